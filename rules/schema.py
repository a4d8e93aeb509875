"""What a rule file may say, as pydantic models. A value that breaks a model becomes a `load.Fault` with its line."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PrivateAttr,
    ValidationInfo,
    model_validator,
)
from pydantic import Tag as Kind
from pydantic_core import PydanticCustomError


def refusal(key: str, /, **fields: object) -> PydanticCustomError:
    """The error a validator raises: `key` names a message under `[rules]`, which may also use `{where}`."""
    return PydanticCustomError(f"rules.{key}", f"rules.{key}", fields)


def _compiles(pattern: str, info: ValidationInfo) -> str:
    # A cached file compiled once already; compiling a hundred patterns again costs 0.1 s.
    if isinstance(info.context, dict) and info.context.get("trusted"):
        return pattern
    try:
        re.compile(pattern)
    except re.error as error:
        raise refusal("bad_regex", reason=str(error)) from error
    return pattern


def _joined(value: object) -> object:
    """An example may be written in pieces, so that a made-up secret does not look like a real one to scanners."""
    if isinstance(value, list) and value and all(isinstance(piece, str) for piece in value):
        return "".join(value)
    return value


Id = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=80)]
Regex = Annotated[str, AfterValidator(_compiles)]
Example = Annotated[str, BeforeValidator(_joined)]


class Origin(BaseModel):
    """Where a record was read. `line` counts from 1."""

    model_config = ConfigDict(frozen=True)

    file: str = ""
    line: int = 0


class Examples(BaseModel):
    """What a rule must find and what it must leave alone. Both lists hold at least one example."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    match: tuple[Example, ...] = Field(min_length=1)
    miss: tuple[Example, ...] = Field(min_length=1)


class Record(BaseModel):
    """One element of a rule file. Subclasses say under which key of a file they stand and which files ship with us."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    section: ClassVar[str] = ""
    files: ClassVar[tuple[str, ...]] = ()

    id: Id
    enabled: bool = True
    _origin: Origin = PrivateAttr(default_factory=Origin)

    @property
    def origin(self) -> Origin:
        return self._origin

    def found_at(self, file: str, line: int) -> None:
        """Called once by the loader."""
        self._origin = Origin(file=file, line=line)


class Secret(Record):
    """A kind of secret: where it stands in a text and what its placeholder is called.

    literals: the rule is tried only where one of them occurs, in any case. With none, it is tried in all that `scope`
        allows, which is for patterns that begin with a set of rare characters.
    pattern: the secrets are the groups whose names begin with `secret`, or else the whole match.
    inner: where one match holds many secrets, finds each of them inside it; its groups are named the same way.
    scope: what the pattern sees: the lines that hold a literal, or the whole text that holds one; with `word`, the
        lines in which a literal stands within 20 or more letters, digits, "_", "-" and "." on end, as in most tokens; with `number`, a text with 13 digits that nothing but blanks and
        dashes parts.
    check: what a value must also be, see `redact.CHECKS`.
    Where two rules overlap, the one that stands first in the file names the kind.
    """

    section: ClassVar[str] = "secrets"
    files: ClassVar[tuple[str, ...]] = ("secrets.yaml",)

    kind: Id
    literals: tuple[str, ...]
    pattern: Regex
    inner: Regex = ""
    scope: Literal["line", "text", "word", "number"] = "line"
    check: Literal[
        "", "real", "password", "secret", "token", "strict", "flag", "url", "random", "body", "card", "resident"
    ] = ""
    examples: Examples


def _compiles_with_families(pattern: str) -> str:
    try:
        # Words of two lengths, as families have them: what cannot hold those, such as a look-behind, is refused here.
        re.compile(FAMILY.sub("(?:x|yz)", pattern))
    except re.error as error:
        raise refusal("bad_regex", reason=str(error)) from error
    return pattern


FAMILY = re.compile(r"(?<!\?P)(?<!\?)<([a-z][a-z0-9_]*)>")
"""A reference to a family of words, in a pattern or in a list of lemmas."""


def _stands_within(word: str) -> str:
    """A family's word is put into the patterns that name the family, often more than once."""
    try:
        if re.compile(f"(?:{word})").groups:
            raise refusal("word_with_group")
    except re.error as error:
        raise refusal("bad_regex", reason=str(error)) from error
    return word


Pattern = Annotated[str, AfterValidator(_compiles_with_families)]
Word = Annotated[str, AfterValidator(_stands_within)]
Language = Literal["ko", "en", "any"]
Speaker = Literal["user", "assistant", "any"]
Mood = Literal[
    "statement", "nominal", "bare", "request", "propose", "settled", "prefer", "must", "forbid", "offer", "can",
    "wish", "attempt", "intend", "condition", "seems", "question", "clause", "modifier",
]  # fmt: skip


class Verb(BaseModel):
    """A Korean predicate by what it says, see `predicates`. What is left out does not matter, save that it is affirmed.

    lemma: stems, or the noun before 하다/되다/이다; `<family>` stands for a family's words.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    lemma: tuple[str, ...] = ()
    voice: tuple[str, ...] = ()
    mood: tuple[Mood, ...] = ()
    past: bool | None = None
    negated: bool | None = False
    final: bool | None = None


def _kind_of_cue(value: object) -> str:
    return "pattern" if isinstance(value, str) else "verb"


Cue = Annotated[Annotated[Pattern, Kind("pattern")] | Annotated[Verb, Kind("verb")], Discriminator(_kind_of_cue)]
"""A pattern over the sentence as `sentences.said_of` gives it, in any case, or a Korean predicate."""


class Family(Record):
    """Words that mean the same to the rules: English ones for patterns, Korean lemmas for verb cues."""

    section: ClassVar[str] = "families"
    files: ClassVar[tuple[str, ...]] = ("words.yaml",)

    ko: tuple[str, ...] = ()
    en: tuple[Word, ...] = ()


class Reading(Record):
    """What rules, guards and moves share: whose sentences they read, and by which cues.

    cues: one of them occurs. needs: each of them occurs. forbids: none of them occurs.
    """

    lang: Language = "any"
    role: Speaker = "any"
    cues: tuple[Cue, ...] = Field(min_length=1)
    needs: tuple[Cue, ...] = ()
    forbids: tuple[Cue, ...] = ()
    examples: Examples


class Rule(Reading):
    """A sentence that may be knowledge, and what part of it.

    part: of a solution the whole, its cause, its fix or the problem; of a decision the choice (stands by itself), the
    request (stands when it was carried out) or a line of a plan the user handed over; of a pattern the rule someone laid
    down or the fact someone found.
    weight: points; 1.0 is enough by itself. ignores: guards that do not apply to it.
    """

    section: ClassVar[str] = "rules"
    files: ClassVar[tuple[str, ...]] = ("solution.yaml", "decision.yaml", "pattern.yaml")

    type: Literal["solution", "decision", "pattern"]
    part: Literal["whole", "cause", "fix", "problem", "choice", "request", "plan", "rule", "fact"]
    weight: float = Field(gt=0, le=2)
    ignores: tuple[Id, ...] = ()

    @model_validator(mode="after")
    def _part_fits(self) -> Self:
        if self.part not in PARTS[self.type]:
            raise refusal("wrong_part", part=self.part, type=self.type, known=", ".join(PARTS[self.type]))
        return self


PARTS = {
    "solution": ("whole", "cause", "fix", "problem"),
    "decision": ("choice", "request", "plan"),
    "pattern": ("rule", "fact"),
}


class Guard(Reading):
    """What must not be taken for knowledge.

    effect: `veto` refuses the sentence, `lower` takes `points` off, `turn` refuses the whole turn, `cut` takes the
    matched passage out of a turn before it is read (patterns only).
    """

    section: ClassVar[str] = "guards"
    files: ClassVar[tuple[str, ...]] = ("guards.yaml",)

    effect: Literal["veto", "lower", "turn", "cut"]
    points: float = Field(default=0, ge=0, le=2)
    parts: tuple[str, ...] = ()
    """Parts of rules it applies to; none given: all."""


class Move(Reading):
    """What a sentence does in the dialogue, or what a heading stands over.

    The user: agree, object, correct (take back), unsure, reason (says why), again (once more). Either: refute (it still
    fails), confirm (it works). The assistant: adopt (reports a change as made), offer (puts up a way to go), recommend
    (asks for a yes to it), errand (offers to look, test, commit), idle (asks whether there is more), back (points at
    what was said before), found (announces the cause). Headings: trouble-heading, cause-heading, fix-heading.
    """

    section: ClassVar[str] = "moves"
    files: ClassVar[tuple[str, ...]] = ("moves.yaml",)

    move: Literal[
        "agree", "object", "correct", "unsure", "reason", "again", "refute", "confirm", "adopt", "offer", "recommend",
        "errand", "idle", "back", "found", "trouble-heading", "cause-heading", "fix-heading",
    ]  # fmt: skip


class Tag(Record):
    """A tag with the other names it goes by, in both languages.

    kinds: names that are tags themselves, the tag beside them: sqlite is a database. statements: patterns, in their
    own case, that show the tag at work: `SELECT ... FROM` is sql. `broad` tags (code, test) stand only where no other does.
    """

    section: ClassVar[str] = "tags"
    files: ClassVar[tuple[str, ...]] = ("tags.yaml",)

    names: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    statements: tuple[Regex, ...] = ()
    broad: bool = False


class Loanword(Record):
    """A word written in both scripts: 버퍼, buffer. `id` is the Latin form. `broad` as for tags."""

    section: ClassVar[str] = "loanwords"
    files: ClassVar[tuple[str, ...]] = ("loanwords.yaml",)

    ko: tuple[str, ...] = Field(min_length=1)
    broad: bool = False
