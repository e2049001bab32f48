"""Growing the prefix trie from a trace, write by write.

Bits are no function of the prefix (one prefix has other bits alone, in a batch and in a block), and a zero embedding gives
many prefixes the same bits. So a content stands for a set of nodes. Nearly always the first of them makes the visible slots
a path, which is tested for all rows at once with sums of random numbers, one a node: the chance that slots which are no
path pass is 2**-64 a query. What fails that test is looked at slot by slot.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from specaudit.trace.records import UNKNOWN
from specaudit.trace.trie import NONE, ROOT, Flaw, FlawKind, PrefixTrie, Reading

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from specaudit.trace.records import LayerView, Step, Trace


def grow(trace: Trace, *, seed: int = 0) -> PrefixTrie:
    """Return the trie of everything that the steps of a trace wrote; `seed` draws the nodes' random numbers."""
    growth = _Growth(trace, seed=seed)
    for step in trace.steps:
        if step.input_ids is not None and step.views:
            growth.take(step, step.input_ids)
    return growth.trie


def sees_its_path(trie: PrefixTrie, step: Step, row: int, query: int, write: int) -> bool:
    """Return whether a query saw, in every layer, what was fed before it and nothing else, flawed or not.

    `write` is the index of the query's write. That what came before may be wrong in itself does not matter here.
    """
    node = trie.node_of_write[write]
    if node == NONE:
        return False
    path = [trie.parents[node]]
    while path[-1] != ROOT:
        path.append(trie.parents[path[-1]])
    path.pop()
    for view in step.views:
        columns = [
            column for column in np.flatnonzero(view.visible[row, query]) if column != view.own_slots[row, query]
        ]
        expected = path if view.window is None else path[: view.window - 1]
        contents = [int(view.contents[row, column]) for column in columns]
        held = [trie.nodes_of_content[content] if content != UNKNOWN else set() for content in contents]
        on_path = set(expected)
        if len(held) != len(expected) or any(nodes.isdisjoint(on_path) for nodes in held):
            return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context:
    """What one group of layers says of a query: the nodes it may continue, or why there is none."""

    parents: frozenset[int]
    guess: int
    flaw: Flaw | None = None


class _Numbers:
    """Depth, random number and the sum of them along the path for each node, in arrays that grow."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self.depths = np.zeros(1024, dtype=np.int64)
        self.own = np.zeros(1024, dtype=np.int64)
        self.along = np.zeros(1024, dtype=np.int64)

    def append(self, node: int, parent: int) -> None:
        while node >= len(self.own):
            for name in ("depths", "own", "along"):
                setattr(self, name, np.concatenate([getattr(self, name), np.zeros_like(getattr(self, name))]))
        number = self._random.integers(-(2**62), 2**62)
        self.depths[node] = self.depths[parent] + 1
        self.own[node] = number
        with np.errstate(over="ignore"):
            self.along[node] = self.along[parent] + number


class _Growth:
    """Grows a trie step by step."""

    def __init__(self, trace: Trace, *, seed: int) -> None:
        self.trie = PrefixTrie(nodes_of_content=[set() for _ in trace.writes_of])
        self.numbers = _Numbers(seed)
        self.clean_node = np.full(len(trace.writes_of) + 1, NONE, dtype=np.int64)  # one of each content; last: UNKNOWN
        self.deepest_node = np.zeros(len(trace.writes_of) + 1, dtype=np.int64)  # of each content, clean or not
        self.origins: list[Flaw | None] = [None] * (len(trace.writes_of) + 1)  # first flaw of contents never clean
        self.contents_of_write: list[list[int]] = [[] for _ in trace.writes]  # one for each group of layers
        for content, writes in enumerate(trace.writes_of):
            for write in writes:
                self.contents_of_write[write].append(content)

    def take(self, step: Step, input_ids: np.ndarray) -> None:
        """Give every write of a step its node; the queries of a block see what those before them wrote."""
        rows, queries = input_ids.shape
        first_write = len(self.trie.node_of_write)
        self.trie.node_of_write += [NONE] * (rows * queries)
        if not step.is_complete:
            return  # a draft made of the target's own first layers
        for query in range(queries):
            ends = [self._clean_ends(view, query) for view in step.views]
            for row in range(rows):
                write = first_write + row * queries + query
                if _is_padding(step, row, query):
                    continue
                nodes = self._nodes(step, row, query, int(input_ids[row, query]), [int(end[row]) for end in ends])
                self._note(write, nodes)

    def _note(self, write: int, nodes: Sequence[int]) -> None:
        first = self.trie.node_of_write[write] = nodes[0]
        is_clean = self.trie.flaws[first] is None
        for content in self.contents_of_write[write]:
            self.trie.nodes_of_content[content].update(nodes)
            if is_clean and self.clean_node[content] == NONE:
                self.clean_node[content] = first
            self.deepest_node[content] = max(int(self.deepest_node[content]), *nodes, key=self.trie.depths.__getitem__)
            flaw, known = self.trie.flaws[first], self.origins[content]
            if flaw is not None and (known is None or flaw.moment < known.moment):
                self.origins[content] = flaw

    def _nodes(self, step: Step, row: int, query: int, token: int, ends: Sequence[int]) -> list[int]:
        """Return the nodes of one write: one, or several where the bits cannot tell prefixes apart."""
        contexts = [
            self._context(step, view, row, query) if end == NONE else _Context(parents=frozenset({end}), guess=end)
            for view, end in zip(step.views, ends, strict=True)
        ]
        parents = frozenset.intersection(*(context.parents for context in contexts))
        flaw = self._flaw(step, row, query, contexts, parents)
        if flaw is not None:
            parent = max((context.guess for context in contexts), key=self.trie.depths.__getitem__)
            return [self.trie.add_flawed(parent, token, flaw)]
        position = int(step.position_ids[row, query])  # type: ignore[index]
        reading = Reading(step=step.index, row=row, query=query, top_ids=_top_ids(step, row, query))
        return [
            self._read(parent, token, reading) for parent in sorted(parents) if self.trie.depths[parent] == position
        ]

    def _read(self, parent: int, token: int, reading: Reading) -> int:
        node = self.trie.add_clean(parent, token)
        self.trie.readings[node].append(reading)
        if len(self.trie.readings[node]) == 1:
            self.numbers.append(node, parent)
        return node

    def _flaw(
        self, step: Step, row: int, query: int, contexts: Sequence[_Context], parents: frozenset[int]
    ) -> Flaw | None:
        """Return the origin of what is wrong with a query's context, or None for a clean one."""
        here = partial(Flaw, step=step.index, row=row, query=query)
        flaws = [context.flaw for context in contexts if context.flaw is not None]
        if step.obstacles or step.position_ids is None:
            return here(kind=FlawKind.UNOBSERVED)
        if flaws:
            return min(flaws, key=lambda flaw: (flaw.kind is FlawKind.UNOBSERVED, flaw.moment, flaw.layer or 0))
        if not parents:
            return here(kind=FlawKind.LAYERS_DISAGREE)
        position, depths = int(step.position_ids[row, query]), {self.trie.depths[parent] for parent in parents}
        if position not in depths:
            return here(kind=FlawKind.POSITION, expected=min(depths), actual=position)
        return None

    def _clean_ends(self, view: LayerView, query: int) -> np.ndarray:
        """Return for each row the node whose path the query's slots are, int64 [B]; `NONE` where that is not plain."""
        rows = np.arange(view.visible.shape[0])
        own = view.own_slots[:, query]
        sees = view.visible[:, query].copy()  # [B, n]
        sees_itself = (own != UNKNOWN) & sees[rows, own]
        sees[rows, own] = False
        nodes = self.clean_node[view.contents]  # [B, n]; UNKNOWN is -1, the last entry
        is_known = ((nodes != NONE) | ~sees).all(1)
        nodes = np.where(sees, np.maximum(nodes, 0), ROOT)
        depths = self.numbers.depths[nodes]
        count, end = sees.sum(1), nodes[rows, depths.argmax(1)]
        depth = self.numbers.depths[end]
        expected = depth if view.window is None else np.minimum(depth, view.window - 1)
        with np.errstate(over="ignore"):
            total = self.numbers.own[nodes].sum(1)
            is_path = total == self.numbers.along[end] - self._sums_before(view, end, count)
        return np.where(sees_itself & is_known & (count == expected) & is_path, end, NONE)

    def _sums_before(self, view: LayerView, ends: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return the sum along each row's path up to where its window begins, int64 [B]."""
        if view.window is None:
            return np.zeros_like(ends)
        ancestors = [self._ancestor(node, count) for node, count in zip(ends.tolist(), counts.tolist(), strict=True)]
        before: np.ndarray = self.numbers.along[ancestors]
        return before

    def _ancestor(self, node: int, generations: int) -> int:
        if generations >= self.trie.depths[node]:
            return ROOT
        for _ in range(generations):
            node = self.trie.parents[node]
        return node

    # What is no plain path, slot by slot

    def _context(self, step: Step, view: LayerView, row: int, query: int) -> _Context:
        own = int(view.own_slots[row, query])
        columns = np.flatnonzero(view.visible[row, query])
        columns = columns[columns != own]
        held = view.contents[row, columns]
        guess = self._guess(held)
        flaw = partial(Flaw, step=step.index, row=row, query=query, layer=view.layers[0])

        def flawed(flaw: Flaw) -> _Context:
            return _Context(parents=frozenset(), guess=guess, flaw=flaw)

        if own == UNKNOWN or not view.visible[row, query, own]:
            return flawed(flaw(kind=FlawKind.HIDDEN if own != UNKNOWN else FlawKind.UNOBSERVED))
        contents = held.tolist()
        for column, content in zip(columns.tolist(), contents, strict=True):
            if content == UNKNOWN or not self.trie.nodes_of_content[content]:
                kind = FlawKind.UNWRITTEN if content == UNKNOWN else FlawKind.PADDING
                return flawed(flaw(kind=kind, column=column))
        never_clean = [self.origins[content] for content in held[self.clean_node[held] == NONE].tolist()]
        if never_clean:
            origins = filter(None, never_clean)
            return flawed(min(origins, key=lambda flaw: (flaw.kind is FlawKind.UNOBSERVED, flaw.moment)))
        sets = [self.trie.nodes_of_content[content] for content in contents]
        clean = [{node for node in nodes if self.trie.flaws[node] is None} for nodes in sets]
        ends = self._possible_ends(clean, view.window)
        if ends:
            return _Context(parents=ends, guess=guess)
        return flawed(self._misfit(flaw, columns.tolist(), clean, view.window))

    def _guess(self, contents: np.ndarray) -> int:
        """Return the deepest node that some slots stand for, the root where they stand for none."""
        known = contents[contents != UNKNOWN]
        if not len(known):
            return ROOT
        nodes: list[int] = self.deepest_node[known].tolist()
        return max(nodes, key=self.trie.depths.__getitem__)

    def _possible_ends(self, sets: Sequence[set[int]], window: int | None) -> frozenset[int]:
        """Return every node whose path, in a window its end, can be laid through the sets, one node a set."""
        count = len(sets)
        if not count:
            return frozenset({ROOT})
        ends = set()
        for node in {node for nodes in sets for node in nodes}:
            depth = self.trie.depths[node]
            if count == (depth if window is None else min(depth, window - 1)) and self._fits(node, sets):
                ends.add(node)
        return frozenset(ends)

    def _fits(self, node: int, sets: Sequence[set[int]]) -> bool:
        """Return whether each of the last nodes of a path can be given a set of its own that holds it."""
        path = []
        for _ in sets:
            path.append(node)
            node = self.trie.parents[node]
        taken: dict[int, int] = {}  # set -> place in the path

        def give(place: int, tried: set[int]) -> bool:
            for number, nodes in enumerate(sets):
                if path[place] in nodes and number not in tried:
                    tried.add(number)
                    if number not in taken or give(taken[number], tried):
                        taken[number] = place
                        return True
            return False

        return all(give(place, set()) for place in range(len(path)))

    def _misfit(
        self, flaw: Callable[..., Flaw], columns: Sequence[int], sets: Sequence[set[int]], window: int | None
    ) -> Flaw:
        """Name why clean slots are no path: two at one depth, a depth without one, or more than one branch."""
        depths = sorted(
            (min(self.trie.depths[node] for node in nodes), column) for column, nodes in zip(columns, sets, strict=True)
        )
        for (one, _), (other, column) in pairwise(depths):
            if one == other:
                return flaw(kind=FlawKind.REPEATED, column=column, expected=one + 1, actual=other)
            if other != one + 1:
                return flaw(kind=FlawKind.HIDDEN, column=column, expected=one + 1, actual=other)
        first, column = depths[0]
        if window is not None and len(depths) > window - 1:
            return flaw(kind=FlawKind.REPEATED, column=column, actual=first)
        if first != 1:
            return flaw(kind=FlawKind.HIDDEN, column=column, expected=1, actual=first)
        return flaw(kind=FlawKind.BRANCHES)


def _top_ids(step: Step, row: int, query: int) -> tuple[int, ...]:
    if step.top_ids is None or step.top_logits is None or step.top_ids[row, query, 0] == UNKNOWN:
        return ()
    if np.isnan(step.top_logits[row, query, 0]):
        return ()
    return step.tied_ids.get((row, query)) or (int(step.top_ids[row, query, 0]),)


def _is_padding(step: Step, row: int, query: int) -> bool:
    """Return whether a query sees itself in no layer: then it is padding, and stands for nothing."""
    for view in step.views:
        column = int(view.own_slots[row, query])
        if column == UNKNOWN or view.visible[row, query, column]:
            return False
    return True
