"""The context block for here and now: reviewed knowledge whose tags fit, within a budget. Standard library only."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

from archiver.project import project_key
from archiver.render import local_day, one_line
from archiver.transcript import RECALL_CLOSE, RECALL_OPEN
from store import messages
from store.reader import KnownEntry, Reader
from store.records import anchor, now_ms

MOST_CHARACTERS = 8_000
"""Agents drop a context of 10,000 characters and more; this leaves them room for their own."""

HALF_LIFE_DAYS = 120
LOOKED_AT = 400
"""Files of the folder whose endings are counted: enough to know a repository by, quick on any."""

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9.+#]*|[가-힣]{2,}")
_MARKER = re.compile(r"<!--|-->")
_ENDINGS = {
    ".py": "python", ".ts": "typescript", ".tsx": "react", ".js": "javascript", ".jsx": "react", ".rs": "rust", ".go": "go",
    ".java": "java", ".kt": "kotlin", ".swift": "swift", ".rb": "ruby", ".php": "php", ".cs": "csharp", ".cpp": "cpp",
    ".c": "c", ".sql": "sql", ".tf": "terraform", ".sh": "bash", ".vue": "vue", ".svelte": "svelte", ".dart": "dart",
}  # fmt: skip
_FILES = {
    "Dockerfile": "docker",
    "docker-compose.yml": "docker",
    "Makefile": "make",
    "Cargo.toml": "rust",
    "go.mod": "go",
    "pom.xml": "java",
}


@dataclass(frozen=True, slots=True)
class Recall:
    """`text` is ready to be injected, or empty. `tokens` is an estimate that counts a CJK character as one."""

    entries: tuple[str, ...] = ()
    shown: int = 0
    of: int = 0
    tokens: int = 0
    text: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the agent stands: the project and the tags that its folder suggests."""

    project_id: int | None
    tags: frozenset[str] = field(default=frozenset())


def recall(
    reader: Reader,
    cwd: Path,
    *,
    budget: int,
    aliases: dict[str, str],
    asked: Sequence[str] = (),
    project_id: int | None = None,
    waiting: int = 0,
) -> Recall:
    """The block for an agent that works in `cwd`.

    asked: tags wanted; then only entries that carry one of them. aliases: written form to canonical tag.
    waiting: entries of this project in the review queue, for the lines shown when nothing is known yet.
    """
    here = project_id if project_id is not None else project_at(reader, cwd)
    known = reader.known_entries(here)
    wanted = frozenset(_canonical(tag, aliases) for tag in asked)
    here_tags = wanted or frozenset(_canonical(tag, aliases) for tag in tags_at(cwd, reader.recent_tags(here)))
    fitting = [entry for entry in known if _fits(entry, here, here_tags, strict=bool(wanted))]
    if not fitting:
        return _nothing_yet(reader, here, waiting)
    weights = _rarity(reader)
    fitting.sort(key=lambda entry: (-_score(entry, here_tags, weights), -entry.reviewed_at, entry.uid))
    return _block(fitting, budget)


def project_at(reader: Reader, cwd: Path) -> int | None:
    """The archived project that holds this folder, by its repository, else by the nearest known folder above it.

    The home folder and the root hold every project and count for themselves only.
    """
    key, _ = project_key(str(cwd))
    home = Path.home()
    above = takewhile(lambda folder: folder not in (home, folder.parent), cwd.parents)
    return reader.project_of_paths([key, str(cwd), *(str(folder) for folder in above)])


def _canonical(tag: str, aliases: dict[str, str]) -> str:
    lowered = tag.strip().casefold()
    return aliases.get(lowered, lowered.replace(" ", "-"))


def _fits(entry: KnownEntry, here: int | None, tags: frozenset[str], *, strict: bool) -> bool:
    """This project's knowledge fits here by itself; what is global fits where it shares a tag."""
    shares = bool(tags.intersection(entry.tags))
    return shares or (not strict and here is not None and entry.project_id == here)


def _rarity(reader: Reader) -> dict[str, float]:
    """Weight of each tag: the rarer, the more it says (inverse document frequency over the active entries)."""
    counts = reader.tag_counts()
    total = sum(counts.values()) or 1
    return {tag: math.log(1 + total / count) for tag, count in counts.items()}


def _score(entry: KnownEntry, tags: frozenset[str], weights: dict[str, float]) -> float:
    matched = sum(weights.get(tag, 0.0) for tag in tags.intersection(entry.tags))
    days = max(0, now_ms() - entry.reviewed_at) / 86_400_000
    return matched + math.pow(0.5, days / HALF_LIFE_DAYS) + 0.25 * math.log1p(entry.uses)


# --- what the folder suggests ---


def tags_at(cwd: Path, recent: Iterable[str] = ()) -> set[str]:
    """Tags that the folder suggests: its name, branch, dependencies, kinds of file, and what recent sessions were about."""
    root = _root(cwd)
    tags = {*recent, *_words(root.name), *_words(_branch(root))}
    for folder in {root, cwd}:
        tags |= _dependencies(folder) | _kinds(folder)
    return {tag.casefold() for tag in tags}


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.replace("-", " ").replace("_", " ").replace("/", " ")))


def _root(cwd: Path) -> Path:
    key = Path(project_key(str(cwd))[0])
    return key if key.is_dir() else cwd


def _branch(root: Path) -> str:
    head = _read(root / ".git" / "HEAD")
    return head.removeprefix("ref: refs/heads/").strip() if head.startswith("ref:") else ""


def _read(path: Path) -> str:
    try:
        if not path.is_file():  # a pipe would make us wait for ever
            return ""
        with path.open("rb") as file:
            return file.read(256_000).decode("utf-8", "replace")
    except OSError:
        return ""


def _dependencies(folder: Path) -> set[str]:
    names = set(re.findall(r"^\s*([A-Za-z][\w.-]*)", _read(folder / "requirements.txt"), re.MULTILINE))
    names |= set(
        re.findall(r"^\s*(?:require\s+)?[\w.-]+\.[a-z]+/\S*?([\w.-]+)\s+v\d", _read(folder / "go.mod"), re.MULTILINE)
    )
    return (
        names
        | _npm(_read(folder / "package.json"))
        | _toml(_read(folder / "pyproject.toml"))
        | _toml(_read(folder / "Cargo.toml"))
    )


def _npm(text: str) -> set[str]:
    try:
        loaded = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return set()
    tables = [loaded.get(name) for name in ("dependencies", "devDependencies")] if isinstance(loaded, dict) else []
    return {name.removeprefix("@").split("/")[0] for table in tables if isinstance(table, dict) for name in table}


def _toml(text: str) -> set[str]:
    try:
        loaded = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return set()
    project = loaded.get("project")
    listed = project.get("dependencies") if isinstance(project, dict) else None
    names = {
        match[0] for item in listed or [] if isinstance(item, str) and (match := re.match(r"[A-Za-z][\w.-]*", item))
    }
    table = loaded.get("dependencies")
    return names | (set(table) if isinstance(table, dict) else set())


def _kinds(folder: Path) -> set[str]:
    try:
        names = [path.name for _, path in zip(range(LOOKED_AT), folder.iterdir(), strict=False)]
    except OSError:
        return set()
    return {_ENDINGS[Path(name).suffix] for name in names if Path(name).suffix in _ENDINGS} | {
        _FILES[name] for name in names if name in _FILES
    }


# --- the block ---


def tokens_in(text: str) -> int:
    """An estimate of model tokens: a CJK character is one, of other text four characters are one."""
    wide = sum(1 for character in text if ord(character) >= 0x1100)
    return wide + (len(text) - wide + 3) // 4


def _block(entries: Sequence[KnownEntry], budget: int) -> Recall:
    head = f"{RECALL_OPEN}\n{messages.text('recall.head')}\n"
    reserve = f"{messages.text('recall.rest', shown=len(entries), of=len(entries))}\n{RECALL_CLOSE}"
    lines: list[str] = []
    uids: list[str] = []
    used, length = tokens_in(head + reserve), len(head + reserve)
    for entry in entries:
        line = _line(entry)
        # One that is too long is passed over; a shorter one behind it may still fit.
        if used + tokens_in(line) + 1 > budget or length + len(line) + 1 > MOST_CHARACTERS:
            continue
        lines.append(line)
        uids.append(entry.uid)
        used, length = used + tokens_in(line) + 1, length + len(line) + 1
    if not lines:
        return Recall(of=len(entries))
    rest = messages.text("recall.rest", shown=len(lines), of=len(entries)) + "\n" if len(lines) < len(entries) else ""
    text = f"{head}{chr(10).join(lines)}\n{rest}{RECALL_CLOSE}"
    return Recall(tuple(uids), len(lines), len(entries), tokens_in(text), text)


def _line(entry: KnownEntry) -> str:
    detail = "" if anchor(entry.detail) == anchor(entry.summary) else one_line(entry.detail)
    body = f"{one_line(entry.summary)} — {detail}" if detail else one_line(entry.summary)
    return f"- [{entry.type}] {_MARKER.sub('', body)} ({entry.uid}, {local_day(entry.reviewed_at)}, {entry.decided_by})"


def _nothing_yet(reader: Reader, here: int | None, waiting: int) -> Recall:
    """At most three lines where no entry fits: the last session here, how many wait, how to search. Nothing where nothing is known."""
    last = reader.last_session(here) if here is not None else None
    lines = []
    if last is not None:
        title = _MARKER.sub("", one_line(last.title or "", 100))
        lines.append(messages.text("recall.last_session", day=local_day(last.ended_at), title=title))
    if waiting:
        lines.append(messages.text("recall.waiting", count=waiting))
    if not lines:
        return Recall()
    lines.append(messages.text("recall.how_to_search"))
    text = "\n".join((RECALL_OPEN, *lines, RECALL_CLOSE))
    return Recall(tokens=tokens_in(text), text=text)
