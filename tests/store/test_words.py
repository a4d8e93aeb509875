"""The word index: what it finds, what it survives."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from store import words as module
from store.filters import Filter
from store.tokens import query_terms
from store.words import MARKER, Row, WordHit, Words, WordsBusy, WordsDamaged


def row(ref: int, text: str, **changed: object) -> Row:
    values: dict[str, object] = {
        "ref": ref,
        "text": text,
        "title": "",
        "project": 1,
        "session": 1,
        "time": 1_000,
        "kind": "entry" if ref < 0 else "chunk",
        "role": "entry" if ref < 0 else "speech",
    }
    return Row(**{**values, **changed})  # type: ignore[arg-type]


@pytest.fixture
def words(tmp_path: Path) -> Words:
    return Words.create(tmp_path / "words")


def put(words: Words, *rows: Row) -> None:
    with words.writing() as writer:
        for one in rows:
            writer.put(one)


def find(words: Words, query: str, wanted: Filter | None = None, limit: int = 10) -> list[WordHit]:
    return words.search(query_terms(query, words.known), wanted or Filter(), limit)


def refs(words: Words, query: str, wanted: Filter | None = None) -> list[int]:
    return [hit.ref for hit in find(words, query, wanted)]


NAMES = {
    1: "로그에 ERR_7F3A 가 남았다",
    2: "pass std::vector<int> by value",
    3: "see path/to/file.py:42",
    4: "점검표를 Wiki에 올렸다",
}


@pytest.mark.parametrize(
    ("query", "ref"), [("ERR_7F3A", 1), ("std::vector<int>", 2), ("path/to/file.py:42", 3), ("점검표", 4), ("Wiki", 4)]
)
def test_exact_name_is_first_among_a_thousand(words: Words, query: str, ref: int) -> None:
    noise = [row(i, f"err 7f3a int vector path file {i}번 점검 목록표 wiki.{i}") for i in range(10, 1_000)]
    put(words, *(row(i, text) for i, text in NAMES.items()), *noise)
    assert refs(words, query)[0] == ref


def test_ticket_does_not_rank_another_ticket_above(words: Words) -> None:
    put(words, row(1, "REQ-0310에 따라 load_tokens 를 my-pkg 로 옮김"), row(2, "REQ-0399 REQ-0399 는 보류"))
    for query in ("REQ-0310", '"REQ-0310"', "req 0310", "load_tokens", "my-pkg"):
        assert refs(words, query)[0] == 1
    assert find(words, "REQ-0310")[0].exact


def test_two_syllable_words_and_any_order_match(words: Words) -> None:
    put(words, row(1, "백업 연동을 메일로 보낸다"), row(2, "취향 설정을 남긴다"))
    assert refs(words, "취향") == [2]
    assert refs(words, "메일 연동 백업") == [1]
    assert find(words, "메일 연동 백업")[0].share == pytest.approx(1.0)


def test_loan_word_is_not_cut_to_its_second_half(words: Words) -> None:
    put(words, row(1, "맥세이프 충전이 끊긴다"), row(2, "세이프모드 서버 이전"), row(3, "안 되는 이유를 못 찾음"))
    assert refs(words, "맥세이프")[0] == 1
    assert refs(words, "안 되는")[0] == 3


@pytest.mark.parametrize(
    "query", ["lock wait:", '27"', "https://b.test", "<<<", "-retry", "(", "AND", "t:[", "*", "", "  ", '"미완성']
)
def test_no_query_raises(words: Words, query: str) -> None:
    put(words, row(1, 'TypeError: cannot read https://b.test/x?y=1 at row 27"'))
    assert set(refs(words, query)) <= {1}


def test_share_tells_how_much_of_the_query_a_row_has(words: Words) -> None:
    put(words, row(1, "token refresh interval"), row(2, "token limit"), *(row(i, "other text") for i in range(3, 20)))
    whole, part = find(words, "token refresh interval")
    assert whole.share == pytest.approx(1.0)
    assert 0 < part.share < 0.5
    assert find(words, "token zzz qqq")[0].share < 0.5


def test_filters_are_applied_before_the_limit(words: Words) -> None:
    put(
        words,
        *(row(i, "배포 절차", project=1) for i in range(1, 50)),
        row(99, "배포 절차 전체", project=2, session=7, time=9_000),
    )
    assert [hit.ref for hit in find(words, "배포", Filter(projects=frozenset({2})), limit=1)] == [99]
    assert refs(words, "배포", Filter(sessions=frozenset({7}))) == [99]
    assert refs(words, "배포", Filter(since=5_000)) == [99]
    assert 99 not in refs(words, "배포", Filter(until=5_000))


def test_entries_and_roles_are_told_apart(words: Words) -> None:
    put(
        words,
        row(1, "cache key"),
        row(2, "cache key", role="abandoned"),
        row(-1, "cache key"),
        row(-2, "cache key", project=0),
    )
    assert set(refs(words, "cache")) == {1, -1, -2}
    assert refs(words, "cache", Filter(chunks=False, entry_ids=frozenset({1}))) == [-1]
    assert set(refs(words, "cache", Filter(projects=frozenset({5})))) == {-2}
    assert set(refs(words, "cache", Filter(entries=False, roles=frozenset({"abandoned"})))) == {2}


def test_put_replaces_and_delete_is_idempotent(words: Words) -> None:
    put(words, row(1, "old name"))
    put(words, row(1, "new name"))
    assert (refs(words, "old"), refs(words, "new"), len(words)) == ([], [1], 1)
    for _ in range(2):
        with words.writing() as writer:
            writer.delete(1)
    assert len(words) == 0


def test_failed_batch_changes_nothing(words: Words) -> None:
    put(words, row(1, "kept"))
    with pytest.raises(KeyError), words.writing() as writer:
        writer.delete(1)
        raise KeyError
    assert refs(words, "kept") == [1]
    put(words, row(2, "kept too"))


def test_second_writer_is_told_and_stale_lock_file_is_no_obstacle(
    words: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    (words.folder / ".tantivy-writer.lock").touch()
    (words.folder / ".tantivy-meta.lock").touch()
    put(words, row(1, "after a crash"))
    monkeypatch.setattr(module, "BUSY_TRIES", 2)
    with words.writing(), pytest.raises(WordsBusy), Words(words.folder).writing():
        pass
    put(words, row(2, "free again"))


def test_lock_of_a_killed_writer_is_free(words: Words) -> None:
    code = "import os, sys; from pathlib import Path; from store.words import Words\nwith Words(Path(sys.argv[1])).writing(): os._exit(9)"
    subprocess.run([sys.executable, "-c", code, str(words.folder)], check=False, cwd=Path(__file__).parents[2])
    put(words, row(1, "goes on"))
    assert refs(words, "goes") == [1]


def test_other_version_missing_or_truncated_file_is_damage(words: Words) -> None:
    put(words, row(1, "some text"))
    folder = words.folder
    for path in [
        p for p in folder.iterdir() if p.suffix in {".term", ".idx", ".fast"} or p.name in {MARKER, "meta.json"}
    ]:
        data = path.read_bytes()
        for broken in (b"", data[: len(data) // 2], None):
            path.unlink()
            if broken is not None:
                path.write_bytes(broken)
            with pytest.raises(WordsDamaged):
                find(Words(folder), "some")
            path.write_bytes(data)
    (folder / MARKER).write_text(json.dumps({"version": -1}))
    with pytest.raises(WordsDamaged):
        Words(folder)


def test_reader_sees_commits_of_another_after_reload(words: Words) -> None:
    other = Words(words.folder)
    put(words, row(1, "fresh"))
    assert refs(other, "fresh") == []
    other.reload()
    assert refs(other, "fresh") == [1]
