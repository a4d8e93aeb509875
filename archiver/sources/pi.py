"""pi's transcripts, and those of omp, which grew out of it: one file a session, a tree with one live branch."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from archiver.sources import entry_records, jsonl, speech
from archiver.sources.branches import Kind
from archiver.sources.entry_records import text_of
from archiver.sources.entry_tree import EntryParse
from archiver.transcript import Found, Parse, Progress, Reread, Source

AGENT = "pi"

_CUT = ("system-reminder", "skill")
_FILES = re.compile(r'\A(?:\s*<file name="[^"\n]*">.*?</file>)+\s*', re.S)
"""Files that were named on the command line stand before the prompt."""
_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:-\d{3})?Z_(?P<id>[0-9a-zA-Z-]{8,64})")
_PROJECT = re.compile(r"--.+--")
_HOMES = (".pi", ".omp")
_UUID_OF_A_TIME = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.I)
_GATEWAY_TOOLS = re.compile(
    r"exec|process|message|cron|gateway|canvas|nodes|tts|web_fetch|web_search|image|sessions_\w+|session_status|memory_\w+|agents_list"
    r"|subagents|run_terminal|shell_exec"
)
_GATEWAY_WORDS = re.compile(
    r"\A\s*\[(?:cron:|Subagent Context\]|[A-Z][\w ]+ \d{4}-\d\d-\d\d)|Read HEARTBEAT\.md|HEARTBEAT_OK|\[message_id: |\(untrusted [a-z ]+\):|\u27e6openclaw:"
)


class Pi(Source):
    agent = AGENT
    parser_version = 1
    formerly = "openclaw"

    def roots(self) -> list[Path]:
        """The folder of sessions that was set, else that of pi's folder; and omp's, where there is one."""
        given = os.environ.get("PI_CODING_AGENT_SESSION_DIR")
        home = os.environ.get("PI_CODING_AGENT_DIR") or "~/.pi/agent"
        roots = [Path(given) if given else Path(home) / "sessions"]
        roots += [omp] if (omp := Path("~/.omp/agent/sessions").expanduser()).is_dir() else []
        return [root.expanduser().absolute() for root in roots]

    def discover(self, root: Path) -> Iterable[Found]:
        """Sessions lie in a folder a project; omp puts those of subagents into a folder named for the session above."""
        paths = [*_files(root, "*.jsonl"), *_files(root, "*/*.jsonl")]
        paths += [path for path in _files(root, "*/*/*.jsonl") if _above(path)]
        yield from (Found(AGENT, path) for path in paths)

    def sniff(self, path: Path, head: bytes) -> Found | None:
        if not entry_records.is_family(head) or _is_gateways_path(path):
            return None
        return Found(AGENT, path) if _is_named(path) or _is_written_by_pi(path, head) else None

    def parse(self, found: Found, progress: Progress, *, final: bool) -> Parse:
        return PiParse(found, progress, final=final)


SOURCE = Pi()


def _files(root: Path, pattern: str) -> list[Path]:
    try:
        return [path for path in root.glob(pattern) if path.is_file()]
    except OSError:
        return []


def _is_named(path: Path) -> bool:
    """Whether its name, or the folder it lies in, is one that only pi gives."""
    is_in_home = any(home in path.parts[:-1] for home in _HOMES) and "sessions" in path.parts[:-1]
    return is_in_home or _NAME.fullmatch(_stem(path)) is not None or _PROJECT.fullmatch(path.parent.name) is not None


def _is_gateways_path(path: Path) -> bool:
    return path.parts[-4:-3] == ("agents",) and path.parts[-2] == "sessions"


def _stem(path: Path) -> str:
    return path.name.partition(".jsonl")[0]


def _above(path: Path) -> str | None:
    """The session above a subagent's: its file stands beside the folder, under the same name."""
    named = _NAME.fullmatch(path.parent.name)
    return named["id"] if named else None


def _is_written_by_pi(path: Path, head: bytes) -> bool:
    """A gateway embeds pi and writes the same records: its names, tools and words tell it, pi's tools and ids tell pi."""
    values = list(entry_records.objects(head.removeprefix(b"\xef\xbb\xbf").split(b"\n")))
    if any(_is_gateways(value) or (entry_records.is_header(value) and value["id"] == _stem(path)) for value in values):
        return False
    return any(_is_pis(value) for value in values)


def _is_gateways(value: dict[str, Any]) -> bool:
    custom, message = text_of(value.get("customType")), value.get("message")
    if custom.startswith("openclaw") or custom == "model-snapshot" or "openclaw" in text_of(value.get("provider")):
        return True
    if not isinstance(message, dict):
        return False
    if message.get("role") == "user":
        return any(_GATEWAY_WORDS.search(text) for text in entry_records.texts_of(message.get("content")))
    if text_of(message.get("provider")) == "openclaw":
        return True
    return any(_GATEWAY_TOOLS.fullmatch(name) for name in (text_of(message.get("toolName")), *_tools(message)))


def _is_pis(value: dict[str, Any]) -> bool:
    if entry_records.is_header(value):
        return entry_records.is_nameless(value) or _UUID_OF_A_TIME.fullmatch(value["id"]) is not None
    message = value.get("message")
    return isinstance(message, dict) and (message.get("role") == "bashExecution" or "bash" in _tools(message))


def _tools(message: dict[str, Any]) -> Iterator[str]:
    content = message.get("content")
    for block in content if isinstance(content, list) else ():
        if entry_records.is_call(block):
            yield text_of(block.get("name"))


class OneBranch:
    """The path from the last entry up to the root is the conversation; whatever is off it was left.

    An entry whose parent is missing goes on from the one before it in the file.
    """

    def __init__(self, state: dict[str, Any], *, resumed: bool) -> None:
        self._resumed = resumed
        self._leaf: str = state.get("leaf", "")
        self._parents: dict[str, str | None] = {}
        self._live: set[str] | None = None

    def link(self, entry: str, parent: str | None, kind: Kind) -> bool:
        if not entry:
            return True
        if self._resumed and (speech.digest(parent) if parent else "") != self._leaf:
            raise Reread  # it leaves a branch that was told as the live one
        self._leaf = speech.digest(entry)
        self._parents.setdefault(entry, parent)
        return True

    def header(self, native: str) -> None:
        pass

    def call(self, call_id: str, entry: str | None) -> None:
        pass

    def is_abandoned(self, entry: str) -> bool:
        if self._live is None:
            self._live = self._path()
        return entry in self._parents and entry not in self._live

    def state(self) -> dict[str, Any]:
        return {"leaf": self._leaf}

    def _path(self) -> set[str]:
        order = list(self._parents)
        before = dict(zip(order[1:], order, strict=False))
        live: set[str] = set()
        step = order[-1] if order else None
        while step is not None and step not in live:
            live.add(step)
            parent = self._parents[step]
            step = parent if parent is None or parent in self._parents else before.get(step)
        return live


class PiParse(EntryParse):
    cut = _CUT

    def __init__(self, found: Found, progress: Progress, *, final: bool) -> None:
        named = _NAME.fullmatch(_stem(found.path))
        above = _above(found.path)
        super().__init__(
            found,
            jsonl.Reader(found.path, progress, final=final),
            progress,
            stem=named["id"] if named else _stem(found.path),
            branches=OneBranch(progress.state, resumed=progress.offset > 0),
            header_of=lambda name: entry_records.header_beside(_folders(found.path), name),
            is_subagent=above is not None,
            parent=above,
        )

    def _spoken(self, raw: str, message: dict[str, Any]) -> str:
        text = speech.cut_tags(_FILES.sub("", speech.cut_recall(raw)), _CUT).strip()
        return "" if speech.is_observer_prompt(text) else text

    def _answered(self, raw: str, message: dict[str, Any]) -> str:
        return speech.cut_tags(speech.cut_recall(raw), _CUT).strip()


def _folders(path: Path) -> Iterator[Path]:
    """Where a session may lie that this one was forked from: beside it, or in another project's folder."""
    yield path.parent
    try:
        yield from (folder for folder in path.parent.parent.iterdir() if _PROJECT.fullmatch(folder.name))
    except OSError:
        return
