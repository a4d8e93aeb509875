"""What a reviewer decided, carried out: one transaction in the database, then the document. The only way in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection

from staging.dedup import NEAR, similarity
from staging.documents import Document, Item, Queue, Redact, document_of, encode
from staging.intake import Support
from staging.waiting import Waiting
from store import decisions, knowledge, sessions, verdicts
from store.database import Database
from store.decisions import Before, Decided
from store.errors import WwtError
from store.records import Action, Entry, SafeText, Scope, Status, anchor, now_ms

SHORTEST = 12
"""Letters and digits below which a line of an edited detail is too common to be an anchor."""
