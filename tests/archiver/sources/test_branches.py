from __future__ import annotations

from archiver.sources.branches import Kind, Tree


def tree(*rows: tuple[str, str | None, Kind]) -> Tree:
    built = Tree()
    for node, parent, kind in rows:
        built.add(node, parent, kind)
    return built


P, S, H = Kind.PROMPT, Kind.STEP, Kind.HARNESS


def abandoned(built: Tree, nodes: str) -> str:
    return "".join(node for node in nodes if built.is_abandoned(node))


def test_a_prompt_rewound_twice_leaves_only_the_last() -> None:
    built = tree(("a", None, P), ("b", "a", S), ("c", "b", P), ("d", "b", P), ("e", "d", S), ("f", "b", P))
    assert abandoned(built, "abcdef") == "cde"


def test_a_rewind_inside_an_abandoned_branch_stays_abandoned() -> None:
    built = tree(("a", None, P), ("b", "a", P), ("c", "b", P), ("d", "b", P), ("e", "a", P))
    assert abandoned(built, "abcde") == "bcd"


def test_going_back_to_an_earlier_branch_keeps_it_live() -> None:
    built = tree(("a", None, P), ("b", "a", S), ("c", "b", P), ("d", "b", P), ("e", "c", P))
    assert abandoned(built, "ce") == ""


def test_a_prompt_behind_a_program_record_of_before_is_no_rewind() -> None:
    built = tree(("a", None, P), ("b", "a", S), ("h", "b", H), ("c", "b", P), ("d", "h", P))
    assert abandoned(built, "abhcd") == ""


def test_many_siblings_and_long_chains_are_quick() -> None:
    built = tree(("root", None, P), *((f"s{n}", f"s{n - 1}" if n else "root", S) for n in range(20_000)))
    for n in range(3_000):
        built.add(f"p{n}", "root", P)
    assert built.is_abandoned("p0") and not built.is_abandoned("s19999")
