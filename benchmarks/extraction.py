"""How much of what labelled sessions hold does mining find, and how much of what it finds is not there?

    python benchmarks/extraction.py FOLDER [--predictions FILE] [--scorer SCRIPT] [--without-repository]

FOLDER holds sessions as JSON, `{"turns": [{"role", "text"}, ...]}`, one file each; a file's name before `__` is its
repository. Writes one prediction a line. `--scorer` runs a scoring script on them.
`--gold DIR` (one labelled file a session) adds the leave-one-repository-out reading: for each repository, every cue
that supports no right finding in any other repository is switched off before that repository is mined.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rules.cues import RuleSet
from rules.finding import Finding
from rules.mine import findings, load_rules, mine
from store.records import Conversation, Role, SafeText, Turn
from store.tokens import morphemes


def conversation(path: Path) -> Conversation:
    turns = json.loads(path.read_text(encoding="utf-8"))["turns"]
    said = tuple(
        Turn(f"{path.stem}#{i}", i + 1, Role(turn["role"]), "prompt", SafeText(turn["text"]))
        for i, turn in enumerate(turns)
        if turn["role"] in ("user", "assistant")
    )
    return Conversation("benchmark", path.stem, path.stem.split("__")[0], SafeText(""), said)


def predictions(talk: Conversation, ruleset: RuleSet) -> list[dict[str, object]]:
    return [
        {
            "session": talk.session,
            "type": candidate.type.value,
            "summary": candidate.summary,
            "detail": candidate.detail,
            "evidence": [quote.quote for quote in candidate.evidence],
            "rule": candidate.rule,
            "confidence": candidate.confidence,
        }
        for candidate in mine(talk, ruleset, morphemes=morphemes)
    ]


def grams(text: str) -> set[str]:
    kept = "".join(c for c in text.lower() if c.isalnum())
    return {kept[i : i + 3] for i in range(len(kept) - 2)}


def right(finding: Finding, gold: dict[str, object]) -> bool:
    """The finding covers a labelled sentence of its type: three-letter containment of .6 either way, as the scorer has it."""
    for entry in gold["entries"]:  # type: ignore[attr-defined]
        if finding.type.value not in (entry["type"], *entry["alt_types"]):
            continue
        for quote in (*entry["evidence"], *entry.get("also", [])):
            wanted = grams(quote["quote"])
            for sentence in finding.sentences:
                here = grams(sentence.text)
                shared = len(wanted & here)
                if wanted and (shared >= 0.6 * len(wanted) or (len(here) >= 12 and shared >= 0.6 * len(here))):
                    return True
    return False


def leave_one_out(talks: list[Conversation], ruleset: RuleSet, gold: Path, out: Path) -> None:
    """Predictions for each repository by the cues that the other repositories support."""
    supported: dict[str, set[str]] = defaultdict(set)
    every: set[str] = set()
    for talk in talks:
        labels = gold / f"{talk.session}.json"
        if not labels.exists():
            continue
        labelled = json.loads(labels.read_text(encoding="utf-8"))
        for finding in findings(talk, ruleset, morphemes):
            cues = {cue.rpartition("/")[0] for cue in finding.cues}
            every |= cues
            for cue in cues if right(finding, labelled) else ():
                supported[cue].add(talk.project)
    with out.open("w", encoding="utf-8") as lines:
        for project in sorted({talk.project for talk in talks}):
            unsupported = frozenset(cue for cue in every if not supported[cue] - {project})
            fewer = replace(ruleset, without=unsupported)
            for talk in talks:
                if talk.project == project:
                    lines.writelines(json.dumps(p, ensure_ascii=False) + "\n" for p in predictions(talk, fewer))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path)
    options.add_argument("--predictions", type=Path, default=Path("predictions.jsonl"))
    options.add_argument("--scorer", type=Path)
    options.add_argument("--split", default="dev")
    options.add_argument("--gold", type=Path)
    given = options.parse_args()
    ruleset, faults = load_rules()
    for fault in faults:
        print(fault)
    talks = [conversation(path) for path in sorted(given.folder.glob("*.json"))]
    morphemes("준비")
    started = time.process_time()
    found = [(talk, predictions(talk, ruleset)) for talk in talks]
    seconds = time.process_time() - started
    turns = sum(len(talk.turns) for talk in talks)
    print(
        f"{len(talks)} sessions, {turns} turns, {sum(len(p) for _, p in found)} findings, {1000 * seconds / turns:.2f} ms of CPU a turn"
    )
    with given.predictions.open("w", encoding="utf-8") as lines:
        lines.writelines(json.dumps(p, ensure_ascii=False) + "\n" for _, each in found for p in each)
    score(given.scorer, given.predictions, given.split)
    if given.gold:
        held_out = given.predictions.with_suffix(".loro.jsonl")
        leave_one_out(talks, ruleset, given.gold, held_out)
        print("leave one repository out:")
        score(given.scorer, held_out, given.split)


def score(scorer: Path | None, file: Path, split: str) -> None:
    if scorer:
        subprocess.run([sys.executable, str(scorer), str(file), "--split", split], check=False)


if __name__ == "__main__":
    main()
