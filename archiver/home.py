"""The opened WWT_HOME: every part built from the settings, in one place, when it is first asked for."""

from __future__ import annotations

import logging
import shutil
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from archiver import config, fingerprint
from store.errors import WwtError
from store.reader import Reader
from store.records import now_ms
from store.revision import REVISION, revision_on_disk

log = logging.getLogger(__name__)

if TYPE_CHECKING:
    from archiver.embed.protocol import Embedder
    from archiver.index import Index
    from archiver.vault import Vault
    from rules.cues import RuleSet
    from rules.load import Fault
    from rules.redact import Redactor
    from staging.documents import Queue
    from staging.promote import Desk
    from store.database import Database


@dataclass(frozen=True)
class Home:
    """A folder with everything wwt keeps. Opening it touches nothing; each part is made when it is used."""

    root: Path
    settings: config.Config
    masking: bool = False
    """The secret rules, and what is to be erased, are being looked after, so that opening a part need not."""

    @classmethod
    def open(cls, root: Path | None = None) -> Home:
        where = root or config.home()
        return cls(where, config.load(where / "config.toml"))

    @property
    def database_path(self) -> Path:
        return self.root / "archive.db"

    @property
    def rules_folder(self) -> Path:
        return self.root / "rules"

    def make(self) -> None:
        """Make the folders and bring the database to the current schema. Private to the user: 0700."""
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            for name in ("staging", "vault", "index", "inbox", "rules", "backups", "log"):
                (self.root / name).mkdir(exist_ok=True, mode=0o700)
        except OSError as error:
            raise WwtError(
                "home.cannot_make", path=error.filename or self.root, reason=error.strerror or error
            ) from error
        if (found := revision_on_disk(self.database_path)) != REVISION:
            if found is None:
                self._drop_indexes()
            import migrations  # noqa: PLC0415  Alembic costs 0.4 s; only a database that is behind pays it

            migrations.upgrade(self.database_path, self.root / "backups")

    def _drop_indexes(self) -> None:
        """Indexes of a database that is gone know rows by numbers that the next one gives to others."""
        for name in ("words", "vectors", ".next-words"):
            shutil.rmtree(self.root / "index" / name, ignore_errors=True)

    @cached_property
    def masked_again(self) -> int:
        """Brings what is kept up to the secret rules where these changed; how many texts that altered.

        Whatever shows stored text comes through `reader` or `database`, which ask this first. It costs a millisecond
        when nothing changed.
        """
        self.make()
        if self.masking:
            return 0
        with closing(Reader(self.database_path)) as reader:
            if reader.meta(fingerprint.KEY) == fingerprint.secret_rules(self.rules_folder):
                return 0
        from archiver.remask import remask  # noqa: PLC0415  SQLAlchemy, YAML and the rule models: 0.5 s

        return remask(replace(self, masking=True))

    @cached_property
    def reader(self) -> Reader:
        _ = self.masked_again
        return Reader(self.database_path)

    @cached_property
    def database(self) -> Database:
        from store.database import Database  # noqa: PLC0415  SQLAlchemy costs 0.25 s; reading commands go without

        _ = self.masked_again
        if not self.masking and self.reader.has_forgetting_due():
            self._go_on_forgetting()
        return Database(self.database_path)

    def _go_on_forgetting(self) -> None:
        """Words that the user had forgotten may stand in some file yet: whoever writes next takes them out."""
        from archiver import erase  # noqa: PLC0415  only after a forgetting that was interrupted

        try:
            erase.finish(replace(self, masking=True))
        except (WwtError, OSError):  # what stands in the way is told by `wwt forget`; other commands go on
            log.debug("erase", exc_info=True)

    @cached_property
    def redact(self) -> Redactor:
        return self._secrets[0]

    @cached_property
    def _secrets(self) -> tuple[Redactor, list[Fault]]:
        from rules.load import load  # noqa: PLC0415  YAML and the rule models cost 0.15 s
        from rules.redact import Redactor  # noqa: PLC0415
        from rules.schema import Secret  # noqa: PLC0415

        secrets, faults = load(Secret, self.rules_folder, cache=self.root / "index" / "rules")
        return Redactor(secrets), faults

    @cached_property
    def _rules(self) -> tuple[RuleSet, list[Fault]]:
        from rules.mine import load_rules  # noqa: PLC0415  YAML and the rule models cost 0.15 s

        return load_rules(self.rules_folder, self.root / "index" / "rules")

    @property
    def rules(self) -> RuleSet:
        return self._rules[0]

    @property
    def rule_faults(self) -> list[Fault]:
        """What is wrong in the user's own rule files; the other rules run."""
        if not any(self.rules_folder.glob("*.y*ml")):
            return []
        return list(dict.fromkeys(self._secrets[1] + self._rules[1]))

    @cached_property
    def queue(self) -> Queue:
        from staging.documents import Queue  # noqa: PLC0415  pydantic costs 0.1 s

        return Queue(self.root / "staging", self.redact)

    @cached_property
    def vault(self) -> Vault:
        from archiver.vault import Vault  # noqa: PLC0415  YAML and SQLAlchemy
        from rules.tags import normalise  # noqa: PLC0415

        return Vault(self.root / "vault", self.database, self.redact, normalise=normalise)

    @cached_property
    def desk(self) -> Desk:
        from rules.tags import normalise  # noqa: PLC0415  pydantic and SQLAlchemy
        from staging.promote import Desk  # noqa: PLC0415

        return Desk(self.database, self.queue, keep_deleted=self.settings.archive.keep_deleted, normalise=normalise)

    @cached_property
    def embedder(self) -> Embedder | None:
        from archiver.embed.choose import open_embedder  # noqa: PLC0415  numpy costs 75 ms, a model more

        # As it is set now: `wwt rebuild --embedding` may have moved the archive to another model since this run began.
        model = config.load(self.root / "config.toml").embedding.model
        return open_embedder(model, cache=self.root / "index" / "embedder")

    @cached_property
    def index(self) -> Index:
        from archiver.index import Index  # noqa: PLC0415  tantivy and numpy

        return Index(self.root / "index", self.database_path, lambda: self.database, lambda: self.embedder)

    def aliases(self) -> dict[str, str]:
        return config.aliases(self.root)

    def waiting_here(self, project_id: int | None) -> int:
        """How many findings of a project wait for review."""
        keys = {row["key"] for row in self.reader.projects() if row["id"] == project_id}
        return sum(
            len(staged.document.entries) for staged in self.queue.read().staged if str(staged.document.project) in keys
        )

    def expire_staging(self) -> int:
        """Drop what nobody looked at for `staging.expire_days`; 0, the default, keeps everything. How many went."""
        from archiver.review import expire  # noqa: PLC0415

        return (
            expire(self.queue, self.settings.staging.expire_days, now=now_ms())
            if self.settings.staging.expire_days
            else 0
        )
