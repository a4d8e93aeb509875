import pytest

from staging.dedup import NEAR, Known, Pool, differs, near, similarity

SAME = [
    ("**Retry** with exponential backoff on 429", "on 429, retry with an exponential backoff"),
    ("배포 전에 마이그레이션을 먼저 돌린다", "마이그레이션은 배포 전에 먼저 돌립니다"),
    ("점검표는 Ｗｉｋｉ에  저장", "점검표를 wiki에 저장한다"),
    ("락 충돌은 WAL 모드로 해결했다", "WAL 모드로 락 충돌 해결"),
]
UPDATES = [
    ("서버 포트는 8080을 쓴다", "서버 포트는 9090을 쓴다"),
    ("use port 8080 for the dev server", "use port 9090 for the dev server"),
    ("로그는 파일로 남기기로 결정", "로그는 파일 말고 stderr로 남기기로 결정"),
    ("pin Python to 3.11 in CI", "pin Python to 3.12 in CI"),
]
OTHER = [
    ("빌드 실패는 캐시를 지워서 해결", "테스트 실패는 시간대를 고정해서 해결"),
    ("we decided to cache results in Redis", "we decided to drop the old Python"),
    ("fix", "the fix is to set the busy timeout before WAL"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_thing_in_other_words_is_near(one: str, other: str) -> None:
    found = near(one, Pool([Known("e1", other)]))
    assert found is not None and not found.differs


@pytest.mark.parametrize(("one", "other"), UPDATES)
def test_another_value_is_near_but_not_the_same(one: str, other: str) -> None:
    found = near(other, Pool([Known("e1", one)]))
    assert found is not None and found.differs and found.similarity < 1


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_other_matters_are_not_near(one: str, other: str) -> None:
    assert similarity(one, other) < NEAR and near(one, Pool([Known("e1", other)])) is None


def test_similarity_is_symmetric_and_whole_for_equal_texts() -> None:
    for one, other in SAME + UPDATES + OTHER:
        assert similarity(one, other) == similarity(other, one)
        assert similarity(one, one) == 1.0 and not differs(one, one)


def test_meaning_finds_what_words_do_not() -> None:
    pool = Pool([Known("e1", "cache results locally"), Known("e2", "결과는 로컬에 캐시한다")])
    found = near("keep a local cache", pool, semantic=lambda text, texts: [0.2, 0.93])
    assert found is not None and (found.known.ref, found.similarity) == ("e2", 0.93)


def test_nothing_is_near_to_nothing() -> None:
    assert near("", Pool([Known("e1", "x")])) is None and near("x", Pool([])) is None
    assert similarity("", "") == 0.0 and similarity("!!!", "???") == 0.0


def test_a_changed_value_is_seen_however_much_is_said_about_it() -> None:
    old = "서버 포트는 8080을 쓴다\n방화벽이 다른 포트를 막고 있어서 운영팀과 이야기해 정한 값"
    new = "서버 포트는 9090을 쓴다\n로컬 프록시와 부딪히는 일이 잦아졌기 때문이다"
    found = near(new, Pool([Known("e0", "로그는 파일로 남긴다"), Known("e1", old)]))
    assert found is not None and found.known.ref == "e1" and found.differs
