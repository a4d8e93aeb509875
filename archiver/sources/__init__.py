"""The transcript sources, one module an agent, in the order of the table in `archiver.agents`."""

from __future__ import annotations

from importlib import import_module

from archiver.agents import AGENTS
from archiver.transcript import Source

SOURCES: tuple[Source, ...] = tuple(import_module(f"{__name__}.{agent.module}").SOURCE for agent in AGENTS)
