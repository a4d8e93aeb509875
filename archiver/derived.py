"""The folder of what can be made anew from the database: who may write in it, and how a finished index takes the old one's place."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

LOCK_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Derived:
    """One process writes at a time; whoever reads keeps what it opened."""

    root: Path

    @property
    def words(self) -> Path:
        return self.root / "words"

    @property
    def vectors(self) -> Path:
        return self.root / "vectors"

    @property
    def next_words(self) -> Path:
        """A word index in the making that outlives the process that makes it."""
        return self.root / ".next-words"

    def fresh(self, place: Path) -> Path:
        """A folder to build in, beside the one in use. What an interrupted build left is removed first."""
        for left in self.root.glob(f".{place.name}-*"):
            shutil.rmtree(left, ignore_errors=True)
        self.make()
        return self.root / f".{place.name}-new"

    def swap(self, fresh: Path, place: Path) -> None:
        old = place.with_name(f".{place.name}-old")
        shutil.rmtree(old, ignore_errors=True)
        with suppress(FileNotFoundError):
            place.rename(old)
        fresh.rename(place)
        shutil.rmtree(old, ignore_errors=True)

    def make(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)

    @contextmanager
    def lock(self, seconds: float | None = None, name: str = ".lock") -> Iterator[bool]:
        """Whether this process may write. The lock is the operating system's and goes with its holder."""
        from filelock import FileLock, Timeout  # noqa: PLC0415  # 15 ms; a search with nothing to mend goes without

        self.make()
        lock = FileLock(self.root / name, timeout=LOCK_SECONDS if seconds is None else seconds)
        try:
            lock.acquire()
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()
