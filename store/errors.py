"""What can go wrong that a person can fix."""

from __future__ import annotations

DONE, FAILED, USAGE, REPAIR = 0, 1, 2, 3


class WwtError(Exception):
    """Something a person can fix. `key` names a message; its fields say which file, where, and what to do.

    Only the command line and the MCP server catch it; they print one line and use `exit_code`.
    """

    def __init__(self, key: str, *, exit_code: int = FAILED, **fields: object) -> None:
        super().__init__(key, fields)
        self.key = key
        self.exit_code = exit_code
        self.fields = fields

    def __str__(self) -> str:
        return f"{self.key} {self.fields}"
