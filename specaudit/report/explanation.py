"""The story of one case: what differs, what led to it, what the query at the origin saw, and what usually makes it.

Pure presentation, as `terminal`: from the records of a run, without a model.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rich.text import Text

from specaudit.core.evidence import Holding, Role
from specaudit.core.summary import is_failing
from specaudit.core.vocabulary import Sync, Verdict
from specaudit.report.cause_advice import ADVICE
from specaudit.report.failures import INDENT, print_failure
from specaudit.report.numbers import counted
from specaudit.report.paragraph import print_paragraph
from specaudit.report.symbols import symbols_for
from specaudit.report.token_diff import token_name
from specaudit.report.visible_text import shorten, visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from specaudit.core.evidence import CaseEvidence, FedBlock, FedToken, SlotRange
    from specaudit.core.records import CaseResult
    from specaudit.report.symbols import Symbols

MOST_RANGES = 10
"""Most ranges of slots shown; those that are as they should be go first, the oldest before the others."""

MOST_TOKENS = 5
"""Most tokens of a range or block shown with their texts."""

TOKEN_CELLS = 14
"""Most terminal cells of such a text."""


def rerun_command(run_directory: str, case_id: str) -> str:
    """Return the command that runs the decoder call of a case again."""
    return f"specaudit run --from {shlex.quote(run_directory)} --case {shlex.quote(case_id)}"


def print_explanation(
    console: Console,
    case: CaseResult,
    cases: Sequence[CaseResult],
    evidence: CaseEvidence | None,
    *,
    run_directory: str,
    token_texts: Mapping[int, str],
) -> None:
    """Print the story of a case of a stored run; `cases` are all that it has, `evidence` is what was kept of this one."""
    symbols = symbols_for(console)
    teller = _Teller(console, symbols, {**token_texts, **(evidence.token_texts if evidence else {})})
    if not is_failing(case):
        teller.say(_no_failure(case))
        return
    print_failure(console, case, cases, symbols, token_texts=teller.texts, shows_causes=False)
    teller.tell_causes(case)
    if evidence is not None:
        teller.tell_blocks(evidence)
        teller.tell_slots(evidence)
    elif case.sync is Sync.VIOLATED:
        teller.say("", "Of what its tokens saw nothing was kept; run the call again to see it.")
    teller.say("", "Run the decoder call of this case again:")
    command = visible(rerun_command(run_directory, case.case_id), ascii_only=symbols.is_ascii)
    console.print(Text(" " * INDENT + command), soft_wrap=True)


def _no_failure(case: CaseResult) -> str:
    if case.verdict is Verdict.UNMEASURED:
        return f"case {case.case_id} is unmeasured, there is nothing to explain: {case.error}"
    seen = f"its inner state is {case.sync.value}"
    if case.sync_reason is not None:
        seen = f"{seen}: {case.sync_reason}"
    return f"case {case.case_id} did not fail: the output equals the reference, and {seen}"


class _Teller:
    """Tells the parts of a story on a console."""

    def __init__(self, console: Console, symbols: Symbols, texts: Mapping[int, str]) -> None:
        self.console = console
        self.symbols = symbols
        self.texts = texts

    def say(self, *sentences: str, indent: int = 0, label: str = "") -> None:
        """Print each sentence as a paragraph."""
        for sentence in sentences:
            text = visible(sentence, ascii_only=self.symbols.is_ascii)
            print_paragraph(self.console, Text(text), indent=indent, label=label)

    def say_raw(self, sentence: str, *, indent: int = INDENT, label: str = "") -> None:
        """Print a paragraph whose parts are safe to print already."""
        print_paragraph(self.console, Text(sentence), indent=indent, label=label)

    def tell_causes(self, case: CaseResult) -> None:
        self.console.print()
        for cause in case.causes:
            self.say(f"cause: {cause.cause.value}: {cause.evidence}")
            self.say(ADVICE[cause.cause], indent=INDENT)
        if not case.causes:
            self.say(_without_cause(case))

    def tell_blocks(self, evidence: CaseEvidence) -> None:
        self.say("", "The steps that led to it, in its row:")
        for block in evidence.blocks:
            self.say_raw(self._block(block), label=f"step {block.step}, row {block.row}: ")

    def _block(self, block: FedBlock) -> str:
        by_role = {role: [token for token in block.tokens if token.role is role] for role in Role}
        decided, accepted, rejected = by_role[Role.DECIDED], by_role[Role.ACCEPTED], by_role[Role.REJECTED]
        parts = []
        if decided:
            parts.append(f"fed {self._named([token.token_id for token in decided], more=block.tokens_before)}")
        parts += [f"accepted {self._named([token.token_id for token in accepted])}"] if accepted else []
        parts += [f"rejected {self._named([token.token_id for token in rejected])}"] if rejected else []
        kept = [token for token in block.tokens if token.role in {Role.DECIDED, Role.ACCEPTED}]
        chosen = kept[-1].top_ids[:1] if kept else ()
        parts += [f"then the target chose {token_name(chosen[0], self.symbols, self.texts)}"] if chosen else []
        return "; ".join(parts) or "fed nothing of it"

    def tell_slots(self, evidence: CaseEvidence) -> None:
        layers = evidence.layers
        where = f"layer {layers[0]}" if len(layers) == 1 else f"layers {', '.join(_spans(layers))}"
        window = "" if evidence.window is None else f", in a window of {evidence.window}"
        self.say("", f"What query {evidence.query} of step {evidence.step}, row {evidence.row} saw in {where}{window}:")
        shown = _shown_ranges(evidence.slots)
        cells = max([len(_columns(slots)) for slots in shown if slots is not None], default=0)
        left_out = len(evidence.slots) - sum(slots is not None for slots in shown)
        for slots in shown:
            if slots is None:
                self.say_raw(f"({counted(left_out, 'further range')} of slots, seen and hidden as they should be)")
            else:
                self.say_raw(
                    self._holding(slots, evidence), label=f"{_columns(slots):<{cells}}  {self._sight(slots)}  "
                )
        for sentence in self._expectations(evidence):
            self.say_raw(sentence)

    def _sight(self, slots: SlotRange) -> str:
        mark = " " if slots.is_visible is slots.is_due else self.symbols.failed
        return f"{mark} {'seen' if slots.is_visible else 'hidden':<6}"

    def _holding(self, slots: SlotRange, evidence: CaseEvidence) -> str:
        tokens = self._named(slots.token_ids)
        steps = _steps(slots, evidence)
        index = slots.stream_index
        numbers = "" if index is None else _numbers(index, slots.columns)
        match slots.holding:
            case Holding.ITSELF:
                return f"itself, token {index} of the stream: {tokens}"
            case Holding.TOKEN:
                return f"{numbers} of the stream: {tokens} ({steps})"
            case Holding.DRAFT:
                return f"rejected for {numbers}: {tokens} ({steps})"
            case Holding.PADDING:
                return f"padding ({steps})"
            case Holding.FOREIGN:
                return f"of row {slots.row}: {tokens} ({steps})"
        return "bits that no forward wrote"

    def _expectations(self, evidence: CaseEvidence) -> list[str]:
        first, last = evidence.expected_from, evidence.stream_index - 1
        due = "itself alone" if last < first else f"{_numbers(first, last - first + 1)} of the stream, and itself"
        missing = f"; missing: {', '.join(_spans(evidence.missing))}" if evidence.missing else ""
        sentences = [f"It should see {due}{missing}."]
        token = _token_at(evidence)
        if token is not None and token.position is not None:
            expected = "" if token.position == evidence.stream_index else f", where {evidence.stream_index} is right"
            sentences.append(f"Its position was {token.position}{expected}.")
        if token is not None and token.top_ids and evidence.output_id is not None:
            likeliest = [
                f"{token_name(one, self.symbols, self.texts)} ({logit:.2f})"
                for one, logit in zip(token.top_ids, token.top_logits, strict=True)
            ]
            goes_on = f"the output goes on with {token_name(evidence.output_id, self.symbols, self.texts)}"
            sentences.append(f"There the target found most likely: {', then '.join(likeliest)}; {goes_on}.")
        return sentences

    def _named(self, token_ids: Sequence[int], *, more: int = 0) -> str:
        """Name tokens by their texts, of many the last ones; `more` come before those given."""
        shown = token_ids[-MOST_TOKENS:]
        names = " ".join(self._short(token) for token in shown)
        left = more + len(token_ids) - len(shown)
        return f"{counted(left, 'token')} and {names}" if left else names

    def _short(self, token: int) -> str:
        text = self.texts.get(token)
        if not text:
            return f"#{token}"
        shown = visible(text, marks_spaces=True, ascii_only=self.symbols.is_ascii)
        return f"'{shorten(shown, TOKEN_CELLS, ellipsis=self.symbols.ellipsis)}'"


def _without_cause(case: CaseResult) -> str:
    if case.sync is Sync.VIOLATED:
        return "No cause was found for it."
    if case.sync is Sync.CERTIFIED:
        return (
            "Every token of the output is one that the target chose at exactly its prefix: rows, positions, masks and "
            "cache were right. What remains are rounding, and when decoding stops."
        )
    reason = "" if case.sync_reason is None else f": {case.sync_reason}"
    return f"The inner state is {case.sync.value}{reason}. The output alone was compared."


def _token_at(evidence: CaseEvidence) -> FedToken | None:
    block = evidence.blocks[-1] if evidence.blocks else None
    tokens = () if block is None else block.tokens
    return next((token for token in tokens if token.query == evidence.query), None)


def _shown_ranges(ranges: Sequence[SlotRange]) -> list[SlotRange | None]:
    """Return the ranges to show in order, None once for those left out."""
    wanted = sorted(range(len(ranges)), key=lambda place: (not _is_telling(ranges[place]), -place))[:MOST_RANGES]
    shown: list[SlotRange | None] = []
    for place, slots in enumerate(ranges):
        if place in wanted:
            shown.append(slots)
        elif None not in shown:
            shown.append(None)
    return shown


def _steps(slots: SlotRange, evidence: CaseEvidence) -> str:
    """Say when a range was written: `steps 0-3`."""
    steps = sorted(set(slots.steps))
    is_later = steps == [evidence.step] and not (slots.is_due or slots.is_visible or slots.holding is Holding.PADDING)
    later = ", later in its block" if is_later else ""
    return f"step{'s' if len(steps) > 1 else ''} {', '.join(_spans(steps))}{later}"


def _is_telling(slots: SlotRange) -> bool:
    return slots.is_visible is not slots.is_due or slots.holding is Holding.ITSELF


def _columns(slots: SlotRange) -> str:
    last = slots.first_column + slots.columns - 1
    return str(last) if slots.columns == 1 else f"{slots.first_column}-{last}"


def _numbers(first: int, count: int) -> str:
    return f"token {first}" if count == 1 else f"tokens {first}-{first + count - 1}"


def _spans(numbers: Sequence[int]) -> list[str]:
    """Return sorted numbers as spans: `0-3`, `5`."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][-1] + 1:
            spans[-1][1:] = [number]
        else:
            spans.append([number])
    return ["-".join(map(str, span)) for span in spans]
