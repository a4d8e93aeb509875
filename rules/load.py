"""Rule files read from disk: the built-in ones, then the user's own; every fault is named with its line."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache as once
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from rules.schema import Examples, Origin, Record, Verb
from store.messages import text

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

M = TypeVar("M", bound=Record)

BUILTIN = Path(__file__).parent
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a rule file. `line` is 0 when the whole file is meant, `rule` is "" when no rule is."""

    path: Path
    line: int
    rule: str
    reason: str

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else str(self.path)
        return f"{where}: {self.rule}: {self.reason}" if self.rule else f"{where}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Standing(Generic[M]):
    """A record after all files are read. `off`: where it is switched off, None where it is not."""

    record: M
    built_in: bool
    replaces: bool = False
    """It is a user's in place of a built-in one."""
    off: Origin | None = None


def load(model: type[M], user: Path | None = None, *, cache: Path | None = None) -> tuple[list[M], list[Fault]]:
    """The records in force: the built-in ones of a model, then those of every YAML file in the folder, or in the file, `user`.

    A user's record replaces the built-in one of the same id, in its place; `{id: x, enabled: false}` takes one away.
    A faulty record leaves the built-in one in force.
    """
    standing, faults = survey(model, user, cache=cache)
    return [each.record for each in standing if each.off is None], faults


def survey(
    model: type[M], user: Path | None = None, *, cache: Path | None = None
) -> tuple[list[Standing[M]], list[Fault]]:
    """As `load`, with the records that are switched off, and whose each one is."""
    records: dict[str, M] = {}
    faults: list[Fault] = []
    for name in model.files:
        file = _read(BUILTIN / name, model, cache)
        faults += file.faults + _repeated(file, records)
        records |= {record.id: record for record in file.records if record.id not in records}
    mine: dict[str, M] = {}
    off: dict[str, Origin] = {}
    for path in rule_files(user):
        file = _read(path, model, cache)
        faults += file.faults + _repeated(file, mine)
        mine |= {record.id: record for record in file.records if record.id not in mine}
        faults += [
            Fault(path, line, name, _misspelt("nothing_to_disable", name, records))
            for name, line in file.off
            if name not in records
        ]
        off |= {name: Origin(file=str(path), line=line) for name, line in file.off}
    standing = {name: Standing(record, True, off=off.get(name)) for name, record in records.items()}
    standing |= {
        name: Standing(record, False, name in records, None if record.enabled else record.origin)
        for name, record in mine.items()
    }
    return list(standing.values()), faults


def load_file(path: Path, model: type[M], *, cache: Path | None = None) -> tuple[list[M], list[Fault]]:
    """The sound records of one file, and everything that is wrong with it. Never raises for what the file holds.

    `cache`: a folder for parsed files, by content. It can be deleted at any time.
    """
    file = _read(path, model, cache)
    return file.records, file.faults


@dataclass(slots=True)
class _File(Generic[M]):
    """What one file gave. `off` are the ids it switches off, with their lines."""

    path: Path
    records: list[M] = field(default_factory=list)
    off: list[tuple[str, int]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    def fault(self, line: int, rule: str, key: str, /, **fields: object) -> None:
        self.faults.append(Fault(self.path, line, rule, text(f"rules.{key}", **fields)))


Place = tuple[str | int, ...]
Element = tuple[int, dict[str, Any]]
"""A record as written, and the line it begins on."""


def rule_files(user: Path | None) -> list[Path]:
    """The YAML files in a folder, by name; a file stands for itself."""
    if user is None or not user.is_dir():
        return [user] if user and user.is_file() else []
    return sorted(path for path in user.iterdir() if path.suffix in (".yaml", ".yml") and path.is_file())


def _repeated(file: _File[M], known: dict[str, M]) -> list[Fault]:
    return [
        Fault(
            file.path,
            record.origin.line,
            record.id,
            text("rules.duplicate", where=f"{known[record.id].origin.file}:{known[record.id].origin.line}"),
        )
        for record in file.records
        if record.id in known
    ]


def _read(path: Path, model: type[M], cache: Path | None) -> _File[M]:
    try:
        content = path.read_bytes()
    except OSError as error:
        file = _File[M](path)
        file.fault(0, "", "unreadable", reason=error.strerror or str(error))
        return file
    parsed = cache / f"{_key(content, model)}.json" if cache else None
    return _from_cache(path, model, parsed) or _from_yaml(path, model, content, parsed)


def _from_yaml(path: Path, model: type[M], content: bytes, parsed: Path | None) -> _File[M]:
    file = _File[M](path)
    lines: dict[Place, int] = {}
    document = _parse(file, content, lines)
    elements: list[Element] = []
    for index, element in _elements(file, document, lines, model.section):
        place = (model.section, index)
        elements.append((lines[place], element))
        if element.get("enabled") is False and set(element) == {"id", "enabled"}:
            file.off.append((str(element["id"]), lines[place]))
        else:
            _add(file, model, element, place, lines)
    if parsed and not file.faults:
        _write_cache(parsed, elements)
    return file


def _add(file: _File[M], model: type[M], element: dict[str, Any], place: Place, lines: dict[Place, int]) -> None:
    rule = str(element.get("id", ""))
    try:
        record = model.model_validate(element)
    except ValidationError as error:
        for detail in _without_consequences(error.errors(include_url=False, include_input=False)):
            file.faults.append(Fault(file.path, _line(lines, place + detail["loc"]), rule, _reason(detail, model)))
        return
    record.found_at(str(file.path), lines[place])
    earlier = next((known for known in file.records if known.id == record.id), None)
    if earlier:
        file.fault(lines[place], rule, "duplicate", where=f"{file.path}:{earlier.origin.line}")
    else:
        file.records.append(record)


def _without_consequences(details: list[ErrorDetails]) -> list[ErrorDetails]:
    """A list whose only item is faulty counts as empty too: the item's fault says it all."""
    places = [detail["loc"] for detail in details]
    return [
        detail
        for detail in details
        if detail["type"] != "too_short"
        or not any(place[: len(detail["loc"])] == detail["loc"] != place for place in places)
    ]


def _elements(
    file: _File[M], document: object, lines: dict[Place, int], section: str
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The records under `section`; what is wrong around them becomes faults."""
    if document is None:
        return
    if not isinstance(document, dict):
        file.fault(1, "", "not_a_mapping", schema=SCHEMA, section=section)
        return
    if document.get("schema") != SCHEMA:
        file.fault(_line(lines, ("schema",)), "", "schema", schema=SCHEMA)
    for key in document:
        if key != "schema" and key not in sections():
            reason = _misspelt("unknown_key", str(key), ("schema", *sections()))
            file.faults.append(Fault(file.path, lines[(key,)], "", reason))
    held = document.get(section)
    if held is None:
        return
    if not isinstance(held, list):
        file.fault(lines[(section,)], "", "wrong_type", where=section, wanted=text("rules.a_list"))
        return
    for index, element in enumerate(held):
        if isinstance(element, dict):
            yield index, element
        else:
            where = f"{section}[{index}]"
            file.fault(lines[(section, index)], "", "wrong_type", where=where, wanted=text("rules.a_mapping"))


@once
def sections() -> tuple[str, ...]:
    """The keys a rule file may have beside `schema`."""

    def below(model: type[Record]) -> Iterator[str]:
        for child in model.__subclasses__():
            yield from (child.section, *below(child))

    return tuple(sorted({section for section in below(Record) if section}))


def _line(lines: dict[Place, int], place: Place) -> int:
    """The line of a place, or of the nearest thing around it that is written in the file."""
    while place and place not in lines:
        place = place[:-1]
    return lines.get(place, 1)


WANTED = {"string": "a_text", "tuple": "a_list", "list": "a_list", "dict": "a_mapping", "model": "a_mapping"}
WANTED |= {"bool": "a_bool", "int": "a_number", "float": "a_number"}


BOUNDS = {"greater_than": "gt", "greater_than_equal": "ge", "less_than": "lt", "less_than_equal": "le"}


def _misspelt(key: str, name: str, known: Iterable[str]) -> str:
    """The message `key` about a name that is none of those known, with the one that was probably meant."""
    from difflib import get_close_matches  # needed only for a slip  # noqa: PLC0415

    listed = list(known)
    meant = get_close_matches(name, listed, 1)
    said = text(f"rules.{key}", key=name, known=", ".join(listed))
    return said + text("rules.meant", name=meant[0]) if meant else said


def _written(place: Place) -> str:
    """`cues[0].lemma`. Pydantic also names the kind of a cue there, which is written nowhere."""
    parts = [
        f"[{part}]" if isinstance(part, int) else f".{part}"
        for before, part in zip(("", *place), place, strict=False)
        if not (isinstance(before, int) and part in ("pattern", "verb"))
    ]
    return "".join(parts).removeprefix(".")


def _reason(detail: ErrorDetails, model: type[Record]) -> str:
    kind = detail["type"]
    where = _written(detail["loc"]) or "rule"
    if kind.startswith("rules."):
        return text(kind, **({"where": where} | detail.get("ctx", {})))
    if kind == "missing":
        return text("rules.missing", key=where)
    if kind == "extra_forbidden":
        *above, name = detail["loc"]
        inner: dict[object, type[BaseModel]] = {"examples": Examples, "verb": Verb}
        holder = inner.get(above[-1] if above else "", model)
        return _misspelt("unknown_key", str(name), holder.model_fields)
    if kind in BOUNDS:
        bound = f"{detail['ctx'][BOUNDS[kind]]:g}"
        return text(f"rules.{kind}", where=where, bound=bound)
    if kind == "literal_error":
        return text("rules.one_of", where=where, known=detail["ctx"]["expected"].replace(" or ", ", "))
    if kind == "string_pattern_mismatch":
        return text("rules.bad_id", where=where)
    wanted = WANTED.get(kind.split("_")[0])
    if wanted and kind.endswith(("_type", "_parsing")):
        return text("rules.wrong_type", where=where, wanted=text(f"rules.{wanted}"))
    if kind == "too_short":
        return text("rules.empty", where=where)
    return text("rules.invalid", where=where, reason=detail["msg"])


def _parse(file: _File[M], content: bytes, lines: dict[Place, int]) -> object:
    """The YAML document as plain values, with the line of each in `lines`; None and a fault if it is not one."""
    import yaml  # costs 25 ms; with a warm cache no file is parsed  # noqa: PLC0415

    try:
        source = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        file.fault(content[: error.start].count(b"\n") + 1, "", "not_utf8")
        return None
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(source)
    try:
        node = loader.get_single_node()
        return None if node is None else _located(node, loader, (), lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        file.fault(mark.line + 1 if mark else 0, "", "broken_yaml", reason=error.problem or str(error))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        file.fault(0, "", "broken_yaml", reason=" ".join(str(error).split()))
    finally:
        loader.dispose()
    return None


def _located(node: Any, loader: Any, place: Place, lines: dict[Place, int]) -> Any:
    import yaml  # loaded by the caller  # noqa: PLC0415

    if place in lines:
        raise yaml.MarkedYAMLError(problem=text("rules.twice", key=place[-1]), problem_mark=node.start_mark)
    lines[place] = node.start_mark.line + 1
    if len(lines) > 1_000_000:  # aliases of aliases: a few lines that stand for gigabytes
        raise yaml.MarkedYAMLError(problem=text("rules.too_large"), problem_mark=node.start_mark)
    if isinstance(node, yaml.SequenceNode):
        return [_located(child, loader, (*place, index), lines) for index, child in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem=text("rules.no_name"), problem_mark=key.start_mark)
        return {key.value: _located(value, loader, (*place, key.value), lines) for key, value in node.value}
    try:
        return loader.construct_object(node)
    except (ValueError, OverflowError) as error:  # a date that no calendar has
        raise yaml.MarkedYAMLError(problem=str(error), problem_mark=node.start_mark) from error


@once
def _schema() -> bytes:
    return (BUILTIN / "schema.py").read_bytes()


def _key(content: bytes, model: type[Record]) -> str:
    # The models' own source is part of the key: what was sound under older models need not be now.
    return hashlib.sha256(b"\0".join((_schema(), model.section.encode(), content))).hexdigest()[:32]


def _from_cache(path: Path, model: type[M], parsed: Path | None) -> _File[M] | None:
    """The file as parsed before, or None if it was not, or the cache is damaged."""
    if parsed is None:
        return None
    file = _File[M](path)
    try:
        for line, element in json.loads(parsed.read_bytes()):
            if set(element) == {"id", "enabled"}:
                file.off.append((element["id"], line))
                continue
            record = model.model_validate(element, context={"trusted": True})
            record.found_at(str(path), line)
            file.records.append(record)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return file


def _write_cache(parsed: Path, elements: list[Element]) -> None:
    """Best effort: a cache that cannot be written costs time, nothing else."""
    temporary = ""
    try:
        parsed.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=parsed.parent, suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            json.dump(elements, out, ensure_ascii=False)
        Path(temporary).replace(parsed)
    except (OSError, TypeError, ValueError):
        if temporary:
            Path(temporary).unlink(missing_ok=True)
