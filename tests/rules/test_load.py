from __future__ import annotations

from pathlib import Path

import pytest

from rules.load import load, load_file, survey
from rules.schema import Family, Rule, Secret

GOOD = """
  - id: {id}
    kind: badge
    literals: [badge]
    pattern: 'badge-\\d+'
    examples: {{match: [[badge, '-1']], miss: [badge]}}
"""


def written(path: Path, *records: str, schema: str = "schema: 1\nsecrets:") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(schema + "".join(records), encoding="utf-8")
    return path


def test_a_sound_file_gives_its_records_with_file_and_line(tmp_path: Path) -> None:
    path = written(tmp_path / "a.yaml", GOOD.format(id="one"))
    records, faults = load_file(path, Secret)
    assert (records[0].origin.file, records[0].origin.line) == (str(path), 3)
    assert records[0].examples.match == ("badge-1",)
    assert faults == []


@pytest.mark.parametrize(
    ("record", "line", "said"),
    [
        ("\n  - id: x\n    kind: 7\n    literals: []\n    pattern: a\n    examples: {match: [a], miss: [b]}", 4, "kind"),
        ("\n  - id: x\n    kind: k\n    literals: []\n    examples: {match: [a], miss: [b]}", 3, "'pattern' is missing"),
        ("\n  - id: x\n    kind: k\n    literals: []\n    patern: a\n    pattern: a\n    examples: {match: [a], miss: [b]}", 6, "patern"),
        ("\n  - id: x\n    kind: k\n    literals: []\n    pattern: '(a'\n    examples: {match: [a], miss: [b]}", 6, "unterminated"),
        ("\n  - id: x\n    kind: k\n    literals: []\n    pattern: a", 3, "'examples' is missing"),
        ("\n  - id: x\n    kind: k\n    literals: []\n    pattern: a\n    examples: {match: [], miss: [b]}", 7, "must not be empty"),
        ("\n  - text", 3, "mapping"),
    ],
)  # fmt: skip
def test_a_faulty_record_is_named_with_its_line_and_the_others_load(
    tmp_path: Path, record: str, line: int, said: str
) -> None:
    records, faults = load_file(written(tmp_path / "a.yaml", record, GOOD.format(id="sound")), Secret)
    assert [known.id for known in records] == ["sound"]
    assert [fault.line for fault in faults] == [line]
    assert said in faults[0].reason


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"schema: 1\nsecrets:\n  - id: [\n", 4),
        (b"schema: 1\n# \xff\n", 2),
        (b"- a list\n", 1),
        (b"schema: 2\n", 1),
        (b"schema: 1\nsecrts: []\n", 2),
        (b"schema: 1\nsecrets: {}\n", 2),
        (b"schema: 1\nschema: 1\n", 2),
        (b"schema: 1\na: &a [*a]\n", 0),
        (b"schema: 1\n? [a, b]\n: 1\n", 2),
        (b"schema: 1\nsecrets:\n  - id: x\n    {a: b}: 1\n", 4),
        (b"schema: 1\nsecrets:\n  - id: 2001-13-45\n", 3),
        (b"[" * 50_000, 1),
    ],
)
def test_a_broken_file_is_one_fault_with_its_line(tmp_path: Path, content: bytes, line: int) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(content)
    records, faults = load_file(path, Secret)
    assert records == []
    assert [fault.line for fault in faults] == [line]


def test_a_missing_file_is_one_fault(tmp_path: Path) -> None:
    assert len(load_file(tmp_path / "none.yaml", Secret)[1]) == 1


def test_the_second_record_of_an_id_is_a_fault(tmp_path: Path) -> None:
    records, faults = load_file(written(tmp_path / "a.yaml", GOOD.format(id="one"), GOOD.format(id="one")), Secret)
    assert len(records) == 1
    assert f"{tmp_path / 'a.yaml'}:3" in faults[0].reason


def test_a_users_record_replaces_the_built_in_one(tmp_path: Path) -> None:
    written(tmp_path / "mine.yaml", GOOD.format(id="jwt"))
    records, faults = load(Secret, tmp_path)
    assert [record.kind for record in records if record.id == "jwt"] == ["badge"]
    assert faults == []


def test_a_user_can_switch_a_built_in_rule_off(tmp_path: Path) -> None:
    written(tmp_path / "mine.yaml", "\n  - {id: jwt, enabled: false}\n  - {id: no-such, enabled: false}")
    records, faults = load(Secret, tmp_path)
    assert "jwt" not in {record.id for record in records}
    assert [fault.rule for fault in faults] == ["no-such"]


def test_a_faulty_replacement_leaves_the_built_in_rule_in_force(tmp_path: Path) -> None:
    written(tmp_path / "mine.yaml", "\n  - {id: jwt, kind: jwt}")
    records, faults = load(Secret, tmp_path)
    assert "jwt" in {record.id for record in records}
    assert {fault.rule for fault in faults} == {"jwt"}


def test_a_cached_file_reads_the_same_and_a_damaged_cache_is_ignored(tmp_path: Path) -> None:
    path = written(tmp_path / "a.yaml", GOOD.format(id="one"), "\n  - {id: jwt, enabled: false}")
    first = load_file(path, Secret, cache=tmp_path / "cache")
    assert load_file(path, Secret, cache=tmp_path / "cache") == first
    (cached,) = (tmp_path / "cache").iterdir()
    cached.write_text('[[3, {"id": "one"', encoding="utf-8")
    again = load_file(path, Secret, cache=tmp_path / "cache")
    assert again == first
    assert again[0][0].origin.line == 3


def test_a_slip_is_answered_with_the_name_that_was_meant(tmp_path: Path) -> None:
    record = """
  - id: Mine
    type: decision
    part: choise
    weight: 3
    cues: [{lemm: [하]}, '(x']
    examples: {mach: [a], match: [b], miss: [c]}"""
    off = "\n  - {id: decision.want.enn, enabled: false}"
    written(tmp_path / "mine.yaml", record, off, schema="schema: 1\nrules:")
    said = sorted((fault.line, fault.reason) for fault in load(Rule, tmp_path)[1])
    assert [line for line, _ in said] == [3, 5, 6, 7, 7, 8, 9]
    assert "'part' must be one of 'whole', 'cause'" in said[1][1]
    assert "'weight' must be at most 2" in said[2][1]
    assert "'cues[1]' is not a valid regular expression" in said[3][1]
    assert "did you mean 'lemma'?" in said[4][1]
    assert "did you mean 'match'?" in said[5][1]
    assert "did you mean 'decision.want.en'?" in said[6][1]


def test_faults_speak_the_users_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WWT_LANG", "ko")
    path = written(tmp_path / "a.yaml", "\n  - {id: x, kind: k}")
    assert "항목이 없습니다" in str(load_file(path, Secret)[1][0])


def test_a_survey_tells_whose_each_record_is_and_which_are_off(tmp_path: Path) -> None:
    path = written(
        tmp_path / "mine.yaml", "\n  - {id: npm-token, enabled: false}", GOOD.format(id="jwt"), GOOD.format(id="one")
    )
    standing = {each.record.id: each for each in survey(Secret, tmp_path)[0]}
    off = standing["npm-token"].off
    assert off is not None
    assert (off.file, off.line, standing["npm-token"].built_in) == (str(path), 3, True)
    assert [(standing[name].built_in, standing[name].replaces, standing[name].off) for name in ("jwt", "one")] == [
        (False, True, None),
        (False, False, None),
    ]
    assert [record.id for record in load(Secret, tmp_path)[0]] == [name for name in standing if name != "npm-token"]


def test_one_file_may_stand_for_the_users_folder(tmp_path: Path) -> None:
    path = written(tmp_path / "draft.yaml", GOOD.format(id="one"))
    written(tmp_path / "other.yaml", GOOD.format(id="two"))
    assert [record.id for record in load(Secret, path)[0] if record.id in ("one", "two")] == ["one"]


@pytest.mark.parametrize("word", ["(", "(?i)fix", "(fix)"])
def test_a_word_of_a_family_that_would_break_patterns_is_a_fault(tmp_path: Path, word: str) -> None:
    written(tmp_path / "a.yaml", f"\n  - {{id: change, en: ['{word}']}}", schema="schema: 1\nfamilies:")
    records, faults = load(Family, tmp_path)
    assert [(fault.rule, fault.line) for fault in faults] == [("change", 3)]
    assert "replace" in next(record.en for record in records if record.id == "change")


@pytest.mark.parametrize("cue", ["(?<=<change>)x", "[a-<change>]"])
def test_a_pattern_that_cannot_hold_the_words_of_a_family_is_a_fault(tmp_path: Path, cue: str) -> None:
    rule = f"""
  - id: x
    type: decision
    part: choice
    weight: 1
    cues: ['{cue}']
    examples: {{match: [a], miss: [b]}}"""
    records, faults = load_file(written(tmp_path / "a.yaml", rule, schema="schema: 1\nrules:"), Rule)
    assert ([fault.line for fault in faults], records) == ([7], [])


def test_a_part_of_another_type_is_a_fault(tmp_path: Path) -> None:
    rule = "\n  - {id: x, type: decision, part: cause, weight: 1, cues: [a], examples: {match: [a], miss: [b]}}"
    _, faults = load_file(written(tmp_path / "a.yaml", rule, schema="schema: 1\nrules:"), Rule)
    assert "choice, request, plan" in faults[0].reason
