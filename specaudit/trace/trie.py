"""The prefix trie: what the target computed, by the tokens that its attention really consumed.

A node is a token prefix; its depth is the number of its tokens. A query that sees exactly a path from the root, in every
layer, at the position that is the path's length, writes the node *path + token*: by induction over writes its logits
equal, in exact arithmetic, those of an uncached forward over that prefix. Any other query writes a flawed node, which
remembers where its context first went wrong; what sees such a slot later is downstream of that origin.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = 0
"""The empty prefix."""

NONE = -1
"""No node: padding, and forwards that are no step of the target."""


class FlawKind(StrEnum):
    """Why what a query saw is no path of the trie."""

    UNOBSERVED = "unobserved"
    """The step was not observed, or it follows one that was not: nothing is known to be wrong."""

    UNWRITTEN = "unwritten"
    """A visible slot holds bits that nobody wrote."""

    PADDING = "padding"
    """A visible slot was written by padding."""

    HIDDEN = "hidden"
    """A slot of the path is not visible, or a query does not see itself."""

    REPEATED = "repeated"
    """Two visible slots stand at one depth, or more are visible than a window holds."""

    BRANCHES = "branches"
    """The visible slots belong to different prefixes."""

    LAYERS_DISAGREE = "layers-disagree"
    """Each layer saw a path, but not the same one."""

    POSITION = "position"
    """The context is a path; the position is not its length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaw:
    """Where a context first went wrong."""

    kind: FlawKind
    """What was wrong."""

    step: int
    """Target forward, counted from 0."""

    row: int
    """Row of the batch."""

    query: int
    """Place in the row's block."""

    layer: int | None = None
    """First layer of the group that shows it, or None where it does not depend on a layer."""

    column: int | None = None
    """First slot that shows it, or None."""

    expected: int | None = None
    """Depth or position that a clean context would have there, or None."""

    actual: int | None = None
    """Depth or position found there, or None."""

    @property
    def moment(self) -> tuple[int, int, int]:
        """Return when it happened, for ordering."""
        return self.step, self.row, self.query


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One time that the target read a prefix in a clean context."""

    step: int
    """Target forward, counted from 0."""

    row: int
    """Row of the batch."""

    query: int
    """Place in the row's block."""

    top_ids: tuple[int, ...]
    """Every token that attains the maximum of the logits; empty where they were not seen or hold NaN."""


@dataclass(slots=True)
class PrefixTrie:
    """Nodes by number; node 0 is the root."""

    parents: list[int] = field(default_factory=lambda: [NONE])
    """Parent of each node."""

    tokens: list[int] = field(default_factory=lambda: [NONE])
    """Last token of each node's prefix."""

    depths: list[int] = field(default_factory=lambda: [0])
    """Number of tokens in each node's prefix."""

    flaws: list[Flaw | None] = field(default_factory=lambda: [None])
    """Origin of what is wrong with a node's context, or None for a clean node."""

    children: dict[tuple[int, int], int] = field(default_factory=dict)
    """Clean child of a node by token."""

    readings: dict[int, list[Reading]] = field(default_factory=lambda: defaultdict(list))
    """Every clean query, by the node that it read, in order."""

    nodes_of_content: list[set[int]] = field(default_factory=list)
    """For each content id the nodes that its bits stand for; empty where padding alone wrote them."""

    node_of_write: list[int] = field(default_factory=list)
    """Node of each write of the trace, `NONE` for padding."""

    def add_clean(self, parent: int, token: int) -> int:
        """Return the clean child of `parent` by `token`, made when it is new."""
        node = self.children.get((parent, token))
        if node is None:
            node = self._append(parent, token, None)
            self.children[parent, token] = node
        return node

    def add_flawed(self, parent: int, token: int, flaw: Flaw) -> int:
        """Return a new node for a write in a flawed context; `parent` is the best guess at what it continues."""
        return self._append(parent, token, flaw)

    def find(self, prefix: Iterable[int]) -> int | None:
        """Return the clean node of a prefix, or None where no clean query read it."""
        node = ROOT
        for token in prefix:
            child = self.children.get((node, token))
            if child is None:
                return None
            node = child
        return node

    def path(self, node: int) -> list[int]:
        """Return the tokens of a node's prefix."""
        tokens = []
        while node != ROOT:
            tokens.append(self.tokens[node])
            node = self.parents[node]
        return tokens[::-1]

    def _append(self, parent: int, token: int, flaw: Flaw | None) -> int:
        self.parents.append(parent)
        self.tokens.append(token)
        self.depths.append(self.depths[parent] + 1)
        self.flaws.append(flaw)
        return len(self.parents) - 1
