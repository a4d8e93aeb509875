from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

from archiver.project import project_key


def test_subfolders_belong_to_their_repository(tmp_path: Path) -> None:
    deep = tmp_path / "외주" / "app" / "src" / "ui"
    deep.mkdir(parents=True)
    (tmp_path / "외주" / "app" / ".git").mkdir()
    assert project_key(str(deep)) == (str(tmp_path / "외주" / "app"), "app")


def test_folders_of_one_name_stay_apart(tmp_path: Path) -> None:
    keys = {project_key(str(tmp_path / client / "api"))[0] for client in ("client-a", "client-b")}
    assert len(keys) == 2


def test_a_worktree_belongs_to_its_repository(tmp_path: Path) -> None:
    admin = tmp_path / "repo" / ".git" / "worktrees" / "feature"
    admin.mkdir(parents=True)
    (admin / "commondir").write_text("../..\n")
    tree = tmp_path / "trees" / "feature"
    (tree / "src").mkdir(parents=True)
    (tree / ".git").write_text(f"gitdir: {admin}\n")
    assert project_key(str(tree / "src")) == project_key(str(tmp_path / "repo")) == (str(tmp_path / "repo"), "repo")


def test_a_worktree_of_a_repository_that_is_gone_still_names_it(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / ".git").write_text("gitdir: /home/u/repo/.git/worktrees/tree\n")
    assert project_key(str(tree)) == ("/home/u/repo", "repo")


def test_a_worktree_of_a_bare_repository_belongs_to_it(tmp_path: Path) -> None:
    (tmp_path / "shop.git" / "worktrees" / "w").mkdir(parents=True)
    tree = tmp_path / "w"
    tree.mkdir()
    (tree / ".git").write_text("gitdir: ../shop.git/worktrees/w")
    assert project_key(str(tree))[0] == str(tmp_path / "shop.git")


def test_a_submodule_is_its_own_project(tmp_path: Path) -> None:
    module = tmp_path / "repo" / "vendor" / "lib"
    module.mkdir(parents=True)
    (tmp_path / "repo" / ".git" / "modules" / "lib").mkdir(parents=True)
    (module / ".git").write_text("gitdir: ../../.git/modules/lib\n")
    assert project_key(str(module)) == (str(module), "lib")


def test_folders_that_are_gone_are_their_own_project() -> None:
    assert project_key("/nowhere/at/all/deja-vu/") == ("/nowhere/at/all/deja-vu", "deja-vu")


@pytest.mark.parametrize(
    "cwd",
    [
        "D:\\OneDrive - Comp\\Work",
        "d:/OneDrive - Comp/Work",
        "\\\\?\\D:\\OneDrive - Comp\\Work\\",
        "D:\\OneDrive - Comp\\x\\..\\Work",
    ],
)
def test_windows_paths_have_one_spelling(cwd: str) -> None:
    assert project_key(cwd) == ("D:/OneDrive - Comp/Work", "Work")


def test_windows_shares_have_one_spelling() -> None:
    assert project_key("\\\\?\\UNC\\nas\\team\\app\\")[0] == project_key("\\\\nas\\team\\app")[0]
    assert project_key("C:\\") == ("C:/", "C:")


def test_composed_and_decomposed_names_are_one_project() -> None:
    assert project_key(unicodedata.normalize("NFD", "/home/u/업무/점검표")) == ("/home/u/업무/점검표", "점검표")


def test_a_repository_in_the_home_folder_does_not_swallow_it(wwt_home: Path) -> None:
    home = Path.home()
    (home / ".git").mkdir()
    (home / "notes").mkdir()
    assert project_key(str(home / "notes"))[0] == str(home / "notes")
    assert project_key(str(home)) == project_key("~") == (str(home), home.name)


@pytest.mark.parametrize("cwd", ["", "/", "relative/path", "/a\x00b", "/" + "x" * 5000, "/\ud800"])
def test_any_text_has_a_project(cwd: str) -> None:
    key, _ = project_key(cwd)
    assert isinstance(key, str)
