"""One ranking over words and meaning, conversation and knowledge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import insert, update

from archiver.search import MOST, Query, by_session, fuse, search, snippet
from store.outbox import enqueue
from store.records import SafeText
from store.tables import entry, entry_tag, evidence, session, tag, turn
from store.words import WordHit
from tests.archiver.archives import Archive, Letters


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    made = Archive(tmp_path / "home")
    yield made
    made.database.close()


@pytest.fixture
def hybrid(tmp_path: Path) -> Iterator[Archive]:
    made = Archive(tmp_path / "home", Letters())
    yield made
    made.database.close()


def prove(archive: Archive, entry_id: int, session_id: int, ord_: int) -> None:
    """A turn of the session that the entry rests on."""
    with archive.database.transaction() as tx:
        key = f"k-{session_id}-{ord_}"
        values = {
            "agent": "claude",
            "session_id": session_id,
            "key": key,
            "pos": ord_,
            "ord": ord_,
            "role": "user",
            "kind": "text",
        }
        turn_id = tx.execute(insert(turn).values(**values, text=SafeText("said")).returning(turn.c.id)).scalar_one()
        tx.execute(insert(evidence).values(entry_id=entry_id, turn_id=turn_id, turn_key=key, role="user"))
        tx.execute(update(entry).where(entry.c.id == entry_id).values(session_id=session_id))


@pytest.mark.parametrize("applied", [True, False])
@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("ERR_7F3A", "빌드에서 ERR_7F3A 가 나온다"),
        ("std::vector<int>", "we pass std::vector<int> here"),
        ("path/to/file.py:42", "at path/to/file.py:42 it stops"),
        ("점검표", "점검표를 다시 썼다"),
    ],
)
def test_exact_words_are_first_among_a_thousand(hybrid: Archive, query: str, text: str, applied: bool) -> None:
    noise = [f"err 7f3a: vector of int, file {n}.py in path {n}, 점검 목록과 도표 {n}" for n in range(1_000)]
    hybrid.say(*noise[:500])
    wanted = hybrid.say(text, session_id=2)[0]
    hybrid.say(*noise[500:], session_id=3)
    if applied:
        hybrid.index.ensure()
        hybrid.index.apply()
    assert hybrid.found(query)[0] == str(wanted)


def test_ticket_never_ranks_another_ticket_above(hybrid: Archive) -> None:
    hybrid.say("REQ-0310에 따라 load_tokens 를 my-pkg 로 옮김")
    hybrid.say("REQ-0399 REQ-0399", session_id=2)
    hybrid.bring_up()
    for query in ("REQ-0310", '"REQ-0310"', "req 0310"):
        assert hybrid.found(query)[0] == "1"


def test_reordered_words_match(archive: Archive) -> None:
    archive.say("백업 연동을 메일로 보낸다", "취향 설정을 남긴다")
    archive.bring_up()
    assert archive.found("메일 연동 백업") == ["1"]


QUERIES = [
    "",
    "   ",
    "(",
    "AND",
    "<<<",
    '27"',
    "-retry",
    "t:[",
    "*",
    "\x00",
    "\ud800",
    "[ERROR] a:b",
    '"미완성 인용',
    "a" * 50_000,
]


@pytest.mark.parametrize("query", QUERIES)
def test_no_query_raises(hybrid: Archive, query: str) -> None:
    hybrid.search(query)
    hybrid.say('TypeError: cannot read https://b.test/x?y=1 at row 27"')
    hybrid.bring_up()
    hybrid.search(query)


def test_blank_query_and_empty_archive_find_nothing(hybrid: Archive) -> None:
    assert hybrid.found("무엇이든") == []
    hybrid.say("무엇")
    hybrid.bring_up()
    assert hybrid.found("  ") == hybrid.found("") == []


def test_limit_is_clamped_not_refused(archive: Archive) -> None:
    for n in range(MOST + 5):
        archive.say(f"배포 {n}", session_id=n + 1)
    archive.bring_up()
    assert len(archive.found("배포", limit=0)) == len(archive.found("배포", limit=-3)) == 1
    assert len(archive.found("배포", limit=10_000)) == MOST


def test_entry_ranks_above_the_chunk_it_came_from_which_folds(hybrid: Archive) -> None:
    chunk_id, other = hybrid.say("인덱스 lock 충돌은 원자적 rename 으로 해결했다", "점심은 김밥")
    known = hybrid.know("인덱스 lock 충돌 해결", "원자적 rename")
    prove(hybrid, known, 1, 1)
    hybrid.bring_up()
    found = hybrid.found("lock 충돌 해결")
    assert found[0] == "e1"
    assert str(chunk_id) not in found
    assert str(other) in found


def test_exact_identifier_outranks_an_unrelated_entry(hybrid: Archive) -> None:
    hybrid.know("오류 처리 방침", "오류가 나면 다시 시도한다")
    wanted = hybrid.say("ERR_7F3A 오류")[0]
    hybrid.bring_up()
    assert hybrid.found("ERR_7F3A 오류 처리")[0] == str(wanted)


def test_replaced_entry_is_below_the_current_one_and_retired_is_hidden(hybrid: Archive) -> None:
    new = hybrid.know("서버 주소를 바꿨다", "포트 9090")
    hybrid.know("서버 포트 8080 서버 포트 8080", status="superseded", superseded_by=new)
    hybrid.know("서버 포트 7070", status="retired")
    hybrid.bring_up()
    hits = hybrid.search("서버 포트 8080").hits
    assert [hit.id for hit in hits] == ["e1", "e2"]
    assert (hits[1].status, hits[1].superseded_by) == ("superseded", "e1")


def test_what_was_just_accepted_or_archived_is_found_at_once(hybrid: Archive) -> None:
    hybrid.say("예전 이야기")
    hybrid.bring_up()
    hybrid.know("캐시 키에 버전을 넣는다")
    hybrid.say("점검표에서 찾은 오류 zq91", session_id=2)
    assert hybrid.found("캐시 버전")[0] == "e1"
    assert hybrid.found("점검표")[0] == "2"
    assert hybrid.found("zq91")[0] == "2"


def test_waiting_row_is_taken_as_it_is_now(archive: Archive) -> None:
    id_ = archive.know("옛 요약")
    archive.bring_up()
    with archive.database.transaction() as tx:
        tx.execute(update(entry).where(entry.c.id == id_).values(summary=SafeText("고친 줄거리")))
        enqueue(tx, "entry", [id_], "put")
    assert archive.found("줄거리") == ["e1"]
    assert archive.found("요약") == []


def test_abandoned_and_subagent_text_only_on_request(archive: Archive) -> None:
    for role in ("speech", "tool", "abandoned", "subagent"):
        archive.say(f"캐시 {role}", role=role, session_id=len(role))
    archive.bring_up()
    assert {hit.role for hit in archive.search("캐시").hits} == {"speech", "tool"}
    assert {hit.role for hit in archive.search("캐시", abandoned=True, subagents=True).hits} == {
        "speech",
        "tool",
        "abandoned",
        "subagent",
    }


def test_filters_narrow_and_are_applied_before_the_limit(hybrid: Archive) -> None:
    hybrid.say(*(f"배포 절차 {n}" for n in range(30)))
    hybrid.say("배포 절차 전체 목록", session_id=2, time=9_000)
    with hybrid.database.transaction() as tx:
        changed = {"agent": "codex", "git_branch": SafeText("main"), "cwd": SafeText("/p/sub"), "project_id": None}
        tx.execute(update(session).where(session.c.id == 2).values(**changed))
    hybrid.bring_up()
    for wanted in ({"agent": "codex"}, {"branch": "main"}, {"cwd": "/p/"}, {"since": 8_000}):
        assert hybrid.found("배포 절차", limit=1, **wanted) == ["31"], wanted
    assert "31" not in hybrid.found("배포 절차", until=8_000, limit=200)
    assert "31" not in hybrid.found("배포 절차", projects=frozenset({1}), limit=200)
    assert hybrid.found("배포 절차", projects=frozenset()) == []


def test_type_tag_and_only_choose_the_kind(archive: Archive) -> None:
    archive.say("포트 이야기")
    id_ = archive.know("포트 결정", type="decision")
    archive.know("포트 해결")
    with archive.database.transaction() as tx:
        tx.execute(insert(tag).values(id=1, name=SafeText("net")))
        tx.execute(insert(entry_tag).values(entry_id=id_, tag_id=1))
    archive.bring_up()
    assert archive.found("포트", type="decision") == archive.found("포트", tag="net") == ["e1"]
    assert archive.found("포트", only="raw") == ["1"]
    assert set(archive.found("포트", only="knowledge")) == {"e1", "e2"}


def test_global_entry_is_found_from_every_project(archive: Archive) -> None:
    archive.know("어디서나 통하는 규칙", scope="global")
    archive.know("이곳만의 규칙")
    archive.bring_up()
    assert archive.found("규칙", projects=frozenset({77})) == ["e1"]


def test_overlapping_chunks_fold_and_a_second_part_still_shows(archive: Archive) -> None:
    for first, last in ((1, 4), (3, 6), (20, 22)):
        archive.say(f"재시도 간격 {first}", first_ord=first, last_ord=last)
    archive.bring_up()
    assert len(archive.found("재시도 간격")) == 2


def test_one_session_does_not_hide_another(archive: Archive) -> None:
    archive.say(*(f"재시도 간격 재시도 간격 {n}" for n in range(10)))
    archive.say("재시도 간격은 이 대화에서 한 번만 나오고 다른 말이 길게 이어진다", session_id=2)
    archive.bring_up()
    hits = archive.search("재시도 간격").hits
    assert "00000002-session" in [hit.session for hit in hits[:5]]
    assert [hit.session for hit in hits[:2]] == ["00000001-session"] * 2
    assert sorted(len(group) for group in by_session(hits))[0] == 1


def test_citation_is_as_short_as_it_can_be(archive: Archive) -> None:
    archive.say("유일한 말")
    archive.say("겹치는 말", session_id=2)
    with archive.database.transaction() as tx:
        names = {"agent": "codex", "external_id": SafeText("00000002-other")}
        tx.execute(insert(session).values(id=3, **names))
    archive.bring_up()
    assert archive.search("유일한").hits[0].citation == "00000001#1"
    assert archive.search("겹치는").hits[0].citation == "00000002-s#1"


def test_reason_names_the_words_or_the_meaning(hybrid: Archive) -> None:
    hybrid.say("캐시 키를 바꿨다")
    hybrid.say("aabb ERR_9", session_id=2)
    hybrid.bring_up()
    reasons = {hit.id: hit.why for hit in hybrid.search("캐시 bbaa").hits}
    assert reasons == {"1": "words: 캐시", "2": "meaning"}
    assert hybrid.search("ERR_9").hits[0].why == "exact name"


def test_hit_whose_row_is_gone_is_dropped(hybrid: Archive) -> None:
    ids = hybrid.say("사라질 말", "남을 말")
    hybrid.bring_up()
    with hybrid.database.transaction() as tx:
        tx.exec_driver_sql(f"DELETE FROM chunk WHERE id = {ids[0]}")
    assert hybrid.found("말") == [str(ids[1])]


def test_snippet_shows_the_match_on_whole_characters() -> None:
    text = SafeText("가" * 500 + " 👨‍👩‍👧👍🏽 점검표를 저장했다 🚀 " + "나" * 500)
    shown, spans = snippet(text, "점검표")
    assert isinstance(shown, SafeText)
    assert [shown[start:end] for start, end in spans] == ["점검표"]
    assert len(shown) <= 400


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=900), st.text(max_size=20))
def test_snippet_spans_lie_in_the_snippet(text: str, query: str) -> None:
    shown, spans = snippet(SafeText(text), query, 80)
    assert all(0 <= start < end <= len(shown) for start, end in spans)
    assert not shown.startswith("…\u200d")


def test_word_list_counts_by_the_share_it_matches() -> None:
    dense = [(1, 0.9), (2, 0.8), (4, 0.1)]
    full, faint = WordHit(2, 9.0, 0.9), WordHit(2, 9.0, 0.05)
    assert fuse(dense, [full])[2] > fuse(dense, [full])[1]
    assert fuse(dense, [faint])[1] > fuse(dense, [faint])[2]
    assert 3 not in fuse(dense, [WordHit(3, 0.0, 0.9)])
    assert fuse([], []) == {}


def test_exact_name_stands_above_every_row_without_it() -> None:
    scores = fuse([(-1, 0.9), (2, 0.1)], [WordHit(-1, 9.0, 0.9), WordHit(2, 1.0, 0.2, exact=True)])
    assert scores[2] > scores[-1]


def test_model_none_searches_words(archive: Archive) -> None:
    archive.say("모델 없이 찾는다")
    archive.bring_up()
    results = search(archive.reader, archive.index, None, Query("찾는다", scope="here"))
    assert (results.scope, results.engines, len(results.hits)) == ("here", ("words",), 1)
