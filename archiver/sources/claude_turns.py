"""Turns of Claude Code while they are read: their blocks are scattered over the records, and over several parses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from archiver.sources import speech
from archiver.transcript import Reread
from store.records import Role

_HEAD = 8


@dataclass(slots=True)
class Draft:
    """A turn being read. `uuids` are the records its blocks came from."""

    key: str
    pos: int
    role: Role
    kind: str
    time: int | None
    blocks: list[str]
    uuids: list[str]
    stored: bool = False
    """An earlier parse yielded the beginning: what is here goes behind it."""

    def take(self, text: str, uuid: str) -> bool:
        """One more block; False if it was here, whole or longer. A longer one takes the place of its beginning."""
        for at, block in enumerate(self.blocks):
            if block.startswith(text):
                return False
            if text.startswith(block):
                self.blocks[at], self.uuids[at] = text, uuid
                return False
        self.blocks.append(text)
        self.uuids.append(uuid)
        return True

    def withdraw(self, uuid: str) -> None:
        """Forget what this record said."""
        kept = [(block, source) for block, source in zip(self.blocks, self.uuids, strict=True) if source != uuid]
        self.blocks, self.uuids = [block for block, _ in kept], [source for _, source in kept]


@dataclass(slots=True)
class Message:
    """Blocks of one API message, whose records are scattered over the file."""

    key: str
    exchange: int
    draft: Draft | None = None
    old: list[list[Any]] = field(default_factory=list)
    """Blocks of earlier parses as [length, digest of all, digest of the first characters]."""

    def held(self, text: str) -> bool:
        """Whether an earlier parse had this block. Reread where digests can't tell."""
        return any(_repeats(text, known) for known in self.old)

    def saved(self, exchange: int) -> dict[str, Any]:
        new = [_fingerprint(block) for block in self.draft.blocks] if self.draft else []
        return {"key": self.key, "age": exchange - self.exchange, "blocks": self.old + new}


def _fingerprint(text: str) -> list[Any]:
    return [len(text), speech.digest(text), speech.digest(text[:_HEAD])[:4]]


def _repeats(text: str, known: list[Any]) -> bool:
    length, whole, head = known
    if len(text) >= length and speech.digest(text[:length]) == whole:
        if len(text) == length:
            return True
        raise Reread
    if len(text) < length and (len(text) < _HEAD or speech.digest(text[:_HEAD])[:4] == head):
        raise Reread
    return False
