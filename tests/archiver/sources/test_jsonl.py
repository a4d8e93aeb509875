from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from archiver.sources.jsonl import Reader, Record, scrub
from archiver.transcript import Progress, Unreadable


def read(
    path: Path, progress: Progress | None = None, *, final: bool = False
) -> tuple[list[object], list[tuple[int, str]], Reader]:
    reader = Reader(path, progress or Progress(), final=final)
    items = list(reader)
    values = [item.value for item in items if isinstance(item, Record)]
    return values, [(item.line, item.reason) for item in items if isinstance(item, Unreadable)], reader


def test_bad_lines_are_reported_by_number_and_cost_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"n":1}\n{"torn": "x\n\nnot json\n[1]\n"str"\nnull\n{"n":2}\n')
    values, faults, reader = read(path)
    assert values == [{"n": 1}, {"n": 2}]
    assert [line for line, _ in faults] == [2, 4, 5, 6, 7]
    assert (reader.offset, reader.line) == (path.stat().st_size, 8)


def test_two_objects_on_a_line_are_both_read_at_their_own_offsets(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes('{"n":"가"}{"n":"나"}\n{"n":3}\n'.encode())
    items = [item for item in Reader(path, Progress(), final=False) if isinstance(item, Record)]
    assert [(item.pos, item.line) for item in items] == [(0, 1), (11, 1), (23, 2)]


def test_a_whole_record_behind_a_torn_one_is_saved(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"type":"user","message":{"type":"te{"type":"user","uuid":"2","message":{"type":"x"}}\n')
    values, faults, _ = read(path)
    assert values == [{"type": "user", "uuid": "2", "message": {"type": "x"}}]
    assert [line for line, _ in faults] == [1]


def test_an_unfinished_last_line_waits_and_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes('{"n":1}\n{"n":"쓰다 만 '.encode() + b"\xea\xb0")
    values, faults, reader = read(path)
    assert (values, faults, reader.offset) == ([{"n": 1}], [], 8)
    assert read(path, final=True)[1][0][0] == 2


def test_a_whole_last_line_without_line_feed_counts_when_the_session_is_over(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"n":1}\n{"n":2}')
    values, _, reader = read(path, final=True)
    path.write_bytes(b'{"n":1}\n{"n":2}\nbad\n')
    assert values == [{"n": 1}, {"n": 2}]
    assert read(path, Progress(reader.offset, reader.line))[1] == [(3, "not JSON: Expecting value")]


@pytest.mark.parametrize(
    "line",
    [b'{"n":' + b"9" * 5000 + b"}", b'{"n":' + b"[" * 100_000 + b"]" * 100_000 + b"}"],
)
def test_json_that_python_refuses_is_one_fault(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(line + b'\n{"n":2}\n')
    values, faults, _ = read(path)
    assert values[-1] == {"n": 2}
    assert len(values) + len(faults) == 2


def test_surrogates_nan_and_marks_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"n":"\\ud82d"}\r\n{"n":NaN}\r\n')
    values, faults, _ = read(path)
    assert scrub(values[0]["n"]) == "\ufffd"  # type: ignore[index]
    assert (len(values), faults) == (2, [])


def test_zero_bytes_around_records_go_and_a_tail_of_them_is_told_once(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"n":1}' + b"\0" * 700 + b"\n" + b"\0" * 50 + b'{"n":2}\n' + b"\0" * 5000)
    values, faults, reader = read(path)
    assert (values, faults) == ([{"n": 1}, {"n": 2}], [(3, "zero bytes at the end")])
    assert read(path, Progress(reader.offset, reader.line))[:2] == ([], [])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "cp949"])
def test_another_encoding_is_one_fault(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes('{"n":"다른 인코딩으로 저장한 기록"}\n{"n":"두 번째 줄도 그렇다"}\n'.encode(encoding))
    values, faults, _ = read(path)
    assert values == []
    assert [reason for _, reason in faults] == ["not UTF-8"]


def test_only_line_feeds_end_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes('{"n":"a\u2028b\u0085c"}\n'.encode())
    assert read(path)[0] == [{"n": "a\u2028b\u0085c"}]


def test_compressed_files_resume_at_offsets_of_their_content(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(zstandard.compress(b'{"n":1}\n{"n":2}\n'))
    assert read(path)[0] == [{"n": 1}, {"n": 2}]
    assert read(path, Progress(8, 1))[0] == [{"n": 2}]


def test_a_damaged_archive_is_one_fault(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(b"no zstd at all, but long enough to be looked at")
    assert [line for line, _ in read(path)[1]] == [1]


def test_a_file_that_cannot_be_read_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "gone.jsonl")
    with pytest.raises(OSError, match="regular"):
        read(tmp_path)


def test_memory_stays_near_the_longest_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with path.open("wb") as file:
        for _ in range(60):
            file.write(b'{"n":"' + b"x" * 1_000_000 + b'"}\n')
    tracemalloc.start()
    count = sum(1 for _ in Reader(path, Progress(), final=False))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 60
    assert peak < 25_000_000


@given(st.lists(st.text(max_size=20)), st.data())
def test_reading_in_two_pieces_gives_the_same_records(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], data: st.DataObject
) -> None:
    import json

    path = tmp_path_factory.mktemp("pieces") / "a.jsonl"
    whole = b"".join(json.dumps({"n": text}).encode() + b"\n" for text in texts)
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    first, _, reader = read(path)
    path.write_bytes(whole)
    second, _, end = read(path, Progress(reader.offset, reader.line))
    assert first + second == [{"n": text} for text in texts]
    assert (end.offset, end.line) == (len(whole), len(texts))
    assert reader.bytes_read + end.bytes_read >= len(whole)
