"""What a tool call proves, and the lines of its error: read the same way for every agent."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass

ERROR_LINES = 5
ERROR_LINE_LENGTH = 300
LABEL_LENGTH = 200
LONGEST_COMMAND = 20_000

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_LOOKS_WRONG = re.compile(
    r"(?i)\b(?:\w*error|\w*exception|fail(?:ed|ure|s)?|fatal|panic(?:ked)?|denied|cannot|can't|not found|no such|undefined|unresolved)\b"
    r"|오류|에러|실패|없습니다"
)
_FINDING = re.compile(r"(?:[A-Za-z]:)?(?=[^\s:]{0,200}[./\\])[^\s:]{1,200}:\d+:\d+:? ")
"""What a compiler or linter says of a place: `main.go:19:13: …`. The name has a dot or a slash, which a time of day has not."""
_TRACEBACK = "Traceback (most recent call last)"


def error_text(output: str) -> str:
    """Up to five lines of a failed call's output: those that name the error, else the first ones."""
    lines = [line.strip() for line in plain(output).split("\n")]
    lines = [line for line in lines if line]
    telling = [at for at, line in enumerate(lines) if _LOOKS_WRONG.search(line) and _TRACEBACK not in line]
    verdicts = [at for at in telling if _ends_traceback(lines, at)]
    # Behind the others: warnings have the same form.
    findings = [at for at, line in enumerate(lines) if _FINDING.match(line)]
    chosen = sorted(list(dict.fromkeys(verdicts + telling + findings))[:ERROR_LINES]) or range(
        min(ERROR_LINES, len(lines))
    )
    return "\n".join(dict.fromkeys(lines[at][:ERROR_LINE_LENGTH] for at in chosen))


def plain(text: str) -> str:
    r"""Text without terminal colours and `\r`."""
    return _ANSI.sub("", text).replace("\r\n", "\n").replace("\r", "\n")


def _ends_traceback(lines: list[str], at: int) -> bool:
    return re.match(r"[\w.]*(?:Error|Exception)\b", lines[at]) is not None


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call whose result matters: the kinds of outcome it may prove, and how to name it."""

    kinds: tuple[str, ...]
    label: str
    status_hidden: bool = False
    """The exit status is another command's (`pytest | tail`), so only a summary line of the output counts."""


def edited(paths: list[str]) -> Call | None:
    named = [path for path in paths if path]
    return Call(("files",), ", ".join(dict.fromkeys(named))[:LABEL_LENGTH]) if named else None


def command(line: str) -> Call | None:
    """The shell command as a test run, build or commit; None if it is none of them."""
    kinds: list[str] = []
    hidden = False
    segments = _segments(line[:LONGEST_COMMAND])
    for at, (segment, _) in enumerate(segments):
        kind = _kind(segment)
        if kind is None:
            continue
        if kind not in kinds:
            kinds.append(kind)
        hidden = hidden or (segments[at][1] == "|" and "pipefail" not in line) or _status_lost(segments, at)
    if not kinds or any(joined == "&" for _, joined in segments):
        return None
    first = next((part for part in line.strip().split("\n") if part.strip()), "")
    return Call(tuple(kinds), plain(first).strip()[:LABEL_LENGTH], hidden)


def _status_lost(segments: list[tuple[str, str]], at: int) -> bool:
    """Whether commands after number `at` run whatever its status was."""
    return any(
        joined in (";", "||") and after[0]
        for (_, joined), after in zip(segments[at:], segments[at + 1 :], strict=False)
    )


def verdict(call: Call, *, failed: bool, output: str) -> bool | None:
    """Whether the call succeeded; None if the record does not prove it."""
    if not call.status_hidden:
        # A failed chain of several kinds (build && test) does not say which of them failed.
        return None if failed and len(call.kinds) > 1 else not failed
    return _summary(output[-20_000:]) if "test" in call.kinds else None


_SUMMARY_FAIL = re.compile(
    r"(?m)^=+ .*\b[1-9]\d* (?:failed|errors?)\b|^\s*(?:Tests?|Test Files|Test Suites):?\s+[1-9]\d* failed|^test result: FAILED"
    r"|^(?:--- )?FAIL(?:ED)?\b|^\d+ examples?, [1-9]\d* failures?|\bBUILD FAILURE\b|^BUILD FAILED|^[1-9]\d* failed\b"
)
_SUMMARY_PASS = re.compile(
    r"(?m)^=+ .*\b\d+ passed\b|^\s*Tests:?\s+(?:.*\b)?\d+ passed|^test result: ok|^ok\s+\S+|^PASS$|^\d+ examples?, 0 failures"
    r"|\bBUILD SUCCESS(?:FUL)?\b|^OK \(\d+ tests?|^\d+ passed\b"
)


def _summary(output: str) -> bool | None:
    text = plain(output)
    if _SUMMARY_FAIL.search(text):
        return False
    return True if _SUMMARY_PASS.search(text) else None


_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_LINE_BEGINS = re.compile(r"^[ \t]*(\w+)", re.M)
_QUOTED = re.compile(r"\\.|\"(?:\\.|[^\"\\])*\"|'[^']*'", re.S)
_REDIRECT = re.compile(r"\d?>&\d?-?|&>>?|\d?>>?\s*\S+")
_JOIN = re.compile(r"&&|\|\||\|&?|;|&|\n")


def _without_heredocs(text: str) -> str:
    """Each here-document, from `<<TAG` to the line that begins with the tag, blanked. One that is never closed stays."""
    if "<<" not in text:
        return text
    closings: dict[str, list[tuple[int, int]]] = {}
    for begins in _LINE_BEGINS.finditer(text):
        closings.setdefault(begins[1], []).append((begins.start(), begins.end()))
    kept: list[str] = []
    at = 0
    for opening in _HEREDOC.finditer(text):
        if opening.start() < at:
            continue
        ends = closings.get(opening[2], [])
        place = bisect_left(ends, (opening.end(), 0))
        if place < len(ends):
            kept += [text[at : opening.start()], " "]
            at = ends[place][1]
    return "".join([*kept, text[at:]])


def _segments(line: str) -> list[tuple[str, str]]:
    """Simple commands with the operator behind each; words of quotes and here-documents are blanked."""
    text = _without_heredocs(line.replace("\\\n", " "))
    text = _REDIRECT.sub(" ", _QUOTED.sub(_blanked, text))
    segments: list[tuple[str, str]] = []
    at = 0
    for match in _JOIN.finditer(text):
        joined = {"\n": ";", "|&": "|"}.get(match[0], match[0])
        segments.append((text[at : match.start()].strip(), joined))
        at = match.end()
    segments.append((text[at:].strip(), ""))
    return [(segment, joined) for segment, joined in segments if segment]


def _blanked(quoted: re.Match[str]) -> str:
    # An escaped quote opens nothing, and many of them would each be followed to the end.
    return quoted[0] if quoted[0].startswith("\\") else " Q "


_PREFIX = re.compile(
    r"^(?:[A-Za-z_]\w*=\S*|sudo|time|env|nice|command|exec|then|do|\(|\{|timeout(?:\s+-\S+)*\s+\S+|npx(?:\s+-\S+)*|bunx|uvx"
    r"|(?:pnpm|yarn|npm)\s+(?:exec|dlx)(?:\s+--)?|(?:uv|poetry|pipenv|pdm|hatch|rye)\s+run(?:\s+--?\S+)*|bundle\s+exec"
    r"|python[\d.]*\s+-m|docker[ -]compose\s+(?:exec|run)(?:\s+-\S+)*\s+\S+|docker\s+exec(?:\s+-\S+)*\s+\S+)\s+"
)
_NPM = r"(?:npm|pnpm|yarn|bun)(?:\s+-\S+(?:\s+(?!-|run\b|test\b|t\b|build\b)\S+)?)*"
_TEST = re.compile(
    rf"(?:pytest|py\.test|tox|nox|jest|vitest|mocha|ava|ctest|rspec|phpunit|pest|unittest|bats|nose2)\b"
    rf"|{_NPM}\s+(?:run\s+)?(?:test|t)\b|{_NPM}\s+run\s+\S*test"
    r"|cargo\s+(?:\+\S+\s+)?(?:test|nextest)\b|(?:go|dotnet|swift|flutter|dart|deno|rails|bazel|zig|mix|sbt|playwright|react-scripts|ng)\s+test\b"
    r"|(?:gradle|gradlew)\b.*\b(?:test\w*|check)\b|(?:mvn|mvnw)\b.*\b(?:test|verify)\b|(?:make|just|task|mise run|rake)\s+(?:\S+\s+)*(?:test|check)\S*"
    r"|python[\d.]*\s+(?:\S*/)?manage\.py\s+test\b|cypress\s+run\b|xcodebuild\b.*\btest\b"
)
_BUILD = re.compile(
    rf"(?:make|tsc|ninja|webpack|rollup|esbuild|xcodebuild)\b|{_NPM}\s+(?:run\s+)?build\b|{_NPM}\s+run\s+\S*build"
    r"|cargo\s+(?:\+\S+\s+)?(?:build|check|clippy)\b|(?:go|dotnet|swift|flutter|zig|bazel|vite|next|nuxt|ng|hugo|astro|hatch)\s+build\b"
    r"|(?:gradle|gradlew)\b.*\b(?:build|assemble\w*|compile\w*)\b|(?:mvn|mvnw)\b.*\b(?:package|install|compile)\b"
    r"|docker(?:\s+buildx|\s+compose|-compose)?\s+build\b|cmake\s+--build\b|(?:just|task|mise run)\s+build\b|build\b"
)
_COMMIT = re.compile(r"git(?:\s+-[cC]\s+\S+|\s+--\S+)*\s+commit\b(?!.*--dry-run)")
_ASKS_ONLY = re.compile(r"\s(?:--help|--version|--collect-only|--list|--dry-run|-n\s*$)(?:\s|$)")


def _kind(segment: str) -> str | None:
    while (shorter := _PREFIX.sub("", segment, count=1)) != segment:
        segment = shorter
    program, space, rest = segment.partition(" ")
    segment = program.replace("\\", "/").rpartition("/")[2].removesuffix(".exe") + space + rest
    if _ASKS_ONLY.search(segment + " "):
        return None
    for kind, pattern in (("commit", _COMMIT), ("test", _TEST), ("build", _BUILD)):
        if pattern.match(segment):
            return kind
    return None
