"""The transcript sources, one module an agent. The order is the order in which formats are tried."""

from archiver.sources.claude_code import ClaudeCode
from archiver.sources.openclaw import OpenClaw
from archiver.transcript import Source

SOURCES: tuple[Source, ...] = (ClaudeCode(), OpenClaw())
