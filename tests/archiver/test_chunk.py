from hypothesis import given
from hypothesis import strategies as st

from archiver.chunk import LIMIT, MOST_TURNS, chunk_turns
from store.records import Role, SafeText, State, Turn


def turns(*texts: str, role: Role = Role.ASSISTANT) -> list[Turn]:
    return [Turn(f"k{number}", number, role, "reply", SafeText(text)) for number, text in enumerate(texts, 1)]


TEXTS = st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=2_500).filter(str.strip), max_size=12)


@given(TEXTS)
def test_everything_said_is_in_some_chunk_of_its_turn(texts: list[str]) -> None:
    pieces = list(chunk_turns(turns(*texts)))
    for number, text in enumerate(texts, 1):
        held = [piece.text for piece in pieces if piece.first_ord <= number <= piece.last_ord]
        assert all(any(word in part for part in held) for word in text.split() if len(word) <= LIMIT)


@given(TEXTS)
def test_no_window_is_longer_than_the_limit(texts: list[str]) -> None:
    assert all(len(piece.text) <= LIMIT for piece in chunk_turns(turns(*texts)))


@given(TEXTS, TEXTS)
def test_an_append_changes_only_the_tail(before: list[str], more: list[str]) -> None:
    old, new = list(chunk_turns(turns(*before))), list(chunk_turns(turns(*before, *more)))
    assert new[: max(0, len(old) - 1)] == old[:-1]


def test_short_turns_share_windows_that_overlap_by_two() -> None:
    pieces = list(chunk_turns(turns(*(f"turn number {number}" for number in range(1, 11)))))
    assert [(piece.first_ord, piece.last_ord) for piece in pieces] == [(1, 6), (5, 10)]
    assert all(piece.last_ord - piece.first_ord < MOST_TURNS for piece in pieces)


def test_a_marker_at_the_end_of_each_long_turn_is_in_a_chunk_of_it() -> None:
    texts = [f"{'문장이 이어집니다. ' * 200}끝표시{number}" for number in range(30)]
    pieces = list(chunk_turns(turns("무엇을 했나요?", *texts)))
    assert all(
        any(f"끝표시{number}" in piece.text and piece.first_ord == number + 2 for piece in pieces)
        for number in range(30)
    )


def test_a_long_reply_carries_the_question_it_answers_and_its_own_heading() -> None:
    asked = Turn("k0", 1, Role.USER, "prompt", SafeText("캐시는 왜 비우나요?\n자세히요"))
    long = Turn(
        "k1", 2, Role.ASSISTANT, "reply", SafeText("설명입니다. " * 120 + "\n## 무효화 순서\n" + "단계입니다. " * 120)
    )
    pieces = [piece for piece in chunk_turns([asked, long]) if piece.first_ord == 2]
    assert pieces[0].heading == "캐시는 왜 비우나요?"
    assert pieces[-1].heading == "무효화 순서"


def test_asides_never_share_a_chunk_with_speech() -> None:
    mixed = [
        Turn("a", 1, Role.USER, "prompt", SafeText("돌려줘")),
        Turn("b", 2, Role.TOOL, "error", SafeText("ImportError: x")),
        Turn("c", 3, Role.ASSISTANT, "reply", SafeText("예전 답"), state=State.ABANDONED),
        Turn("d", 4, Role.ASSISTANT, "reply", SafeText("됐습니다")),
    ]
    assert {(piece.role, piece.first_ord, piece.last_ord) for piece in chunk_turns(mixed)} == {
        ("speech", 1, 4),
        ("tool", 2, 2),
        ("abandoned", 3, 3),
    }


@given(TEXTS)
def test_starting_where_a_window_starts_gives_the_rest_of_the_windows(texts: list[str]) -> None:
    said = turns(*texts)
    whole = list(chunk_turns(said))
    for start in {piece.first_ord for piece in whole}:
        assert list(chunk_turns(said, start)) == [piece for piece in whole if piece.first_ord >= start]
