"""Ownership: which stream each block belongs to, where it may be read as part of several.

Decided for whole lineages, when everything that tells streams apart has been fed. Lineages that live at the same time
belong to different streams where they can, even if one of them would fit another stream better by itself: rows with equal
prompts are as many streams, and a fault in one of them is not excused by its twin.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from specaudit.checks.assignment import assign

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specaudit.checks.lineage import Node

TOKEN = 4
"""Weight of a stream token that a lineage fed or chose; the tie-breakers, 1 and 2, weigh less."""

SHARING = 10**6 * TOKEN
"""Weight against a stream that another lineage has at the same time."""

NOTHING_FED = 10**3 * SHARING
"""Weight against a stream of which a lineage fed nothing."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Lineage:
    """Blocks that go on with one another."""

    nodes: list[Node]
    fed: dict[int, int] = field(default_factory=dict)  # stream -> tokens fed, exact ones twice
    chosen: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))  # stream -> output tokens chosen

    def add(self, node: Node) -> None:
        self.nodes.append(node)
        for stream, reading in node.readings.items():
            before = self._left_before(stream)
            fed = max(reading.reached - before, 0) + max(reading.reached_exactly - before, 0)
            fed = max(fed, 1) if reading.indices else 0
            self.fed[stream] = max(self.fed.get(stream, 0), fed)
            self.chosen[stream] |= reading.chosen

    def _left_before(self, stream: int) -> int:
        """Return how many tokens of a stream the slots held where the lineage begins another: none of its own doing."""
        first = self.nodes[0]
        reading = first.readings.get(stream)
        return reading.reached_before if reading is not None and first.begins and not reading.begins else 0


def choose_owners(nodes: Sequence[Node]) -> list[int | None]:
    """Return the stream of each block, in order, or None for blocks that belong to none."""
    lineages = _lineages(nodes)
    owners: dict[Node, int] = {}
    choosing = _Choosing()
    starting: dict[int, list[_Lineage]] = defaultdict(list)
    for lineage in lineages:
        if any(lineage.fed.values()):
            starting[lineage.nodes[0].step].append(lineage)
    for step in sorted(starting):
        for lineage, stream in choosing.choose(starting[step]):
            owners |= dict.fromkeys(lineage.nodes, stream)
    return [owners.get(node) for node in nodes]


def _lineages(nodes: Sequence[Node]) -> list[_Lineage]:
    """Return the lineages: each block goes on with its parent's unless that has gone on elsewhere or a stream begins."""
    going_on: dict[Node, _Lineage] = {}  # last block -> lineage
    lineages: list[_Lineage] = []
    for node in sorted(nodes, key=lambda node: (node.step, node.parent is None or node.row != node.parent.row)):
        lineage = going_on.pop(node.parent, None) if node.parent is not None and not node.begins else None
        if lineage is None:
            lineage = _Lineage(nodes=[])
            lineages.append(lineage)
        lineage.add(node)
        going_on[node] = lineage
    return lineages


class _Choosing:
    """Gives lineages to streams, those that start together at once."""

    def __init__(self) -> None:
        self.claimed: dict[int, set[int]] = defaultdict(set)  # step -> streams
        self.owned: set[int] = set()

    def choose(self, lineages: Sequence[_Lineage]) -> list[tuple[_Lineage, int]]:
        """Return the stream of each lineage."""
        streams = sorted({stream for lineage in lineages for stream in lineage.fed})
        weights = np.array([[self._weight(lineage, stream) for stream in streams] for lineage in lineages])
        shared = np.full((len(lineages), len(lineages)), weights.min() - NOTHING_FED)
        np.fill_diagonal(shared, weights.max(1) - SHARING)  # its best stream, though another lineage has it
        columns = assign(np.concatenate([weights, shared], axis=1))
        chosen = [
            streams[column if column < len(streams) else int(weights[place].argmax())]
            for place, column in enumerate(columns)
        ]
        for lineage, stream in zip(lineages, chosen, strict=True):
            self.owned.add(stream)
            for node in lineage.nodes:
                self.claimed[node.step].add(stream)
        return list(zip(lineages, chosen, strict=True))

    def _weight(self, lineage: _Lineage, stream: int) -> int:
        fed = lineage.fed.get(stream, 0)
        is_claimed = any(stream in self.claimed[node.step] for node in lineage.nodes)
        return (
            TOKEN * (fed + len(lineage.chosen[stream]))
            - SHARING * is_claimed
            - NOTHING_FED * (not fed)
            + 2 * (stream not in self.owned)
            + (stream == lineage.nodes[0].row)
        )
