"""Whether the rules about secrets are still those under which the archive was masked. Standard library only: the hook asks too."""

from __future__ import annotations

import hashlib
from pathlib import Path

import rules

KEY = "secret_rules"
"""Where the database keeps the fingerprint of the rules it was last masked under."""

OWN = ("secrets.yaml", "redact.py", "plausible.py", "scrub.py")
"""What decides how a text is masked, as far as it is ours."""


def secret_rules(user: Path) -> str:
    """Fingerprint of the built-in rules and of the user's rule folder, by content. It costs a millisecond.

    It also changes with rules that mask nothing: whether the masking differs, `Redactor.version` tells.
    """
    digest = hashlib.sha256()
    built_in = Path(rules.__file__).parent
    for path in [*(built_in / name for name in OWN), *_yaml_files(user)]:
        content = _content(path)
        digest.update(f"{path.name}\0{len(content)}\0".encode("utf-8", "replace"))
        digest.update(content)
    return digest.hexdigest()[:32]


def _yaml_files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix in (".yaml", ".yml") and path.is_file())
    except OSError:
        return []


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
