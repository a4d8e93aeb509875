"""Which records of a transcript tree lie on branches that the user rewound."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    PROMPT = 1
    """Something a person said: only these can rewind, or be rewound."""
    STEP = 2
    """Answers, tool results, compaction boundaries."""
    HARNESS = 3
    """Written by the program between prompts (command echoes, attachments): a prompt may hang from it by accident."""


@dataclass(frozen=True, slots=True)
class _Node:
    parent: str | None
    kind: Kind
    order: int


class Tree:
    """Records by id and parent, in file order. A parent that is not there makes its child a root."""

    def __init__(self) -> None:
        self._nodes: dict[str, _Node] = {}
        self._abandoned: set[str] | None = None
        self._inherited: dict[str, bool] = {}

    def __contains__(self, node: str) -> bool:
        return node in self._nodes

    def add(self, node: str, parent: str | None, kind: Kind) -> None:
        self._nodes.setdefault(node, _Node(parent, kind, len(self._nodes)))

    def is_abandoned(self, node: str) -> bool:
        """Whether `node` is a rewound prompt or descends from one. Ask only when all records are in."""
        if self._abandoned is None:
            self._abandoned = self._rewound_prompts()
        trail = []
        answer = False
        for step in self._upwards(node):
            if step in self._abandoned or step in self._inherited:
                answer = self._inherited.get(step, True)
                break
            trail.append(step)
        self._inherited.update(dict.fromkeys(trail, answer))
        return answer

    def _upwards(self, node: str | None) -> list[str]:
        """`node` and its ancestors up to the root, or to the nearest one whose answer is known. Safe against loops."""
        path: list[str] = []
        seen: set[str] = set()
        while node is not None and node in self._nodes and node not in seen:
            path.append(node)
            seen.add(node)
            if node in self._inherited:
                break
            node = self._nodes[node].parent
        return path

    def _rewound_prompts(self) -> set[str]:
        """Prompts that a later prompt replaced.

        Prompt q is one when it is off the path from its tree's last prompt to the root, and a later prompt of the
        same exchange hangs from the record q hangs from, or from an earlier one. Siblings that no later prompt made
        (parallel tool results, several roots, compaction boundaries) are none.
        """
        siblings: dict[str, list[str]] = defaultdict(list)
        paths: dict[str, list[str]] = {}
        last: dict[str, str] = {}
        root_of: dict[str, str] = {}
        for prompt in [node for node, value in self._nodes.items() if value.kind is Kind.PROMPT]:
            path = self._path_to_prompt(prompt)
            paths[prompt] = path
            top = path[-1]
            # The exchange a prompt belongs to: the prompt above it, else the root of its tree.
            siblings[top].append(prompt)
            above = root_of.get(top, top)
            root_of[prompt] = above
            last[above] = prompt
        active: set[str] = set()
        for prompt in last.values():
            step = prompt
            while step not in active:
                active.add(step)
                step = paths[step][-1] if step in paths else step
        rewound = set()
        for top, prompts in siblings.items():
            for at, prompt in enumerate(prompts):
                if prompt in active or (top in paths and top not in active):
                    continue
                hung = set(paths[prompt][1:])
                order = self._nodes[prompt].order
                if any(self._hangs_from(later, order) & hung for later in reversed(prompts[at + 1 :])):
                    rewound.add(prompt)
        return rewound

    def _path_to_prompt(self, prompt: str) -> list[str]:
        """The prompt, then its ancestors up to and including the nearest other prompt, or the root."""
        path = [prompt]
        seen = {prompt}
        parent = self._nodes[prompt].parent
        while parent is not None and parent in self._nodes and parent not in seen:
            path.append(parent)
            seen.add(parent)
            if self._nodes[parent].kind is Kind.PROMPT:
                break
            parent = self._nodes[parent].parent
        return path

    def _hangs_from(self, prompt: str, order: int) -> set[str]:
        """The record the prompt hangs from, and those above it that the program wrote after record number `order`.

        After a rewind, commands such as /model write records before the next prompt.
        """
        found = set()
        parent = self._nodes[prompt].parent
        while parent is not None and parent in self._nodes and parent not in found:
            found.add(parent)
            node = self._nodes[parent]
            if node.kind is not Kind.HARNESS or node.order < order:
                break
            parent = node.parent
        return found
