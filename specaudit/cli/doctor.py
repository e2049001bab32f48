"""`specaudit doctor`: what a run would meet, told by a short probe."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from specaudit.cli.lists import names, positive_integers
from specaudit.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import Console

    from specaudit.diagnosis import DecoderProbe, Diagnosis, MemoryEstimate, ModelFacts, TargetFacts, TargetProbe

LABEL = 17
"""Terminal cells of a label, the two before it included."""

RUN_PROMPTS, RUN_TOKENS = 24, 48
"""The run that a time is estimated for: prompts, and new tokens for each."""


def doctor(
    target: Annotated[
        str, typer.Option(help="Target: bundled:FAMILY, a directory, a .gguf file or a Hub id.")
    ] = "bundled:llama",
    draft: Annotated[
        str | None, typer.Option(help="Draft: as --target, or layers:N, noisy:SCALE, stress:RATE, ngram.")
    ] = None,
    decoder: Annotated[
        str | None, typer.Option(help="Decoders to probe on two prompts, comma-separated, as for `run`.")
    ] = None,
    draft_tokens: Annotated[str, typer.Option(help="Tokens proposed a round (K).")] = "4",
    batch_size: Annotated[int, typer.Option(help="Rows that memory is estimated for.")] = 8,
    length: Annotated[int, typer.Option(help="Tokens a row that memory is estimated for.")] = 1024,
    dtype: Annotated[
        str | None, typer.Option(help="auto, float32, bfloat16, float16 or float64. Default: as for `run`.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, mps, ... Default: the best available.")] = None,
    attn: Annotated[str, typer.Option(help="Attention implementation, by its name in transformers.")] = "sdpa",
    revision: Annotated[str | None, typer.Option(help="Revision of a Hub target.")] = None,
    draft_revision: Annotated[str | None, typer.Option(help="Revision of a Hub draft.")] = None,
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Run code shipped with a model.")
    ] = False,
    allow_pickle: Annotated[bool, typer.Option("--allow-pickle", help="Load pickled weights.")] = False,
    threads: Annotated[int | None, typer.Option(help="Torch threads.")] = None,
    json: Annotated[
        str | None, typer.Option(help="Write the findings as JSON to this file; - for standard output.")
    ] = None,
) -> None:
    """Probe a target, and decoders, for a few tokens: what can be observed, and what a run costs.

    Exit code: 0 when it could be told, whatever it is; 2 bad usage or input.
    """
    from dataclasses import asdict

    from rich.console import Console

    from specaudit.cli.json_file import check_json_file, write_json
    from specaudit.core.records import AuditPlan
    from specaudit.doctor import diagnose

    for value, option in ((batch_size, "--batch-size"), (length, "--length"), (threads, "--threads")):
        if value is not None and value < 1:
            raise UsageError(f"{value} is not a whole number of at least 1", where=option, way_out="give 1 or more.")
    check_json_file(json)
    plan = AuditPlan(
        target=target,
        draft=draft,
        decoders=() if decoder is None else names(decoder, option="--decoder"),
        batch_sizes=(batch_size,),
        draft_tokens=positive_integers(draft_tokens, option="--draft-tokens"),
        max_new_tokens=RUN_TOKENS,
        prompts="bundled",
        prompt_field=None,
        limit=None,
        chat_template=False,
        dtype=dtype,
        device=device,
        attn=attn,
        revision=revision,
        draft_revision=draft_revision,
        trust_remote_code=trust_remote_code,
        allow_pickle=allow_pickle,
        eos_token_ids=None,
        seeds=(0,),
        threads=threads,
    )
    diagnosis = diagnose(plan, batch_size=batch_size, length=length)
    if json != "-":
        _print(Console(), diagnosis)
    if json is not None:
        write_json({"schema_version": 1, **asdict(diagnosis)}, json)


def _print(console: Console, diagnosis: Diagnosis) -> None:
    """Print what was found, in aligned lines of 80 columns."""
    from rich.text import Text

    from specaudit.report.paragraph import print_paragraph
    from specaudit.report.symbols import symbols_for
    from specaudit.report.visible_text import visible

    ascii_only = symbols_for(console).is_ascii
    for heading, lines in _sections(diagnosis):
        console.print(Text(heading, style="bold"))
        for label, value in lines:
            print_paragraph(console, Text(visible(value, ascii_only=ascii_only)), label=f"  {label}".ljust(LABEL))


def _sections(diagnosis: Diagnosis) -> Iterator[tuple[str, Iterable[tuple[str, str]]]]:
    yield "target", _target_lines(diagnosis.target)
    if diagnosis.draft is not None:
        yield "draft", _draft_lines(diagnosis.draft)
    yield "taps, in a probe of the target", _tap_lines(diagnosis.probe)
    for probe in diagnosis.decoders:
        yield f"decoder, in a probe of two prompts at batch {probe.batch_size}", _decoder_lines(probe)
    yield "cost", _cost_lines(diagnosis.probe, diagnosis.memory)


def _target_lines(target: TargetFacts) -> Iterator[tuple[str, str]]:
    yield from _model_lines(target.model)
    yield "attention", f"{target.model.attn}, {_windows(target.windows)}"
    yield "positions", _positions(target)
    yield "end of text", ", ".join(map(str, target.eos_token_ids)) or "none: every output fills its budget"
    is_eos = target.pad_token_id in target.eos_token_ids
    yield "padding", f"{target.pad_token_id}{', which also ends a text (padding is known by length)' if is_eos else ''}"
    yield "chat template", "yes" if target.has_chat_template else "no: chats of the bundled prompts are left out"
    yield "left out", ", ".join(target.ignored_settings) or "nothing that the generation config sets"


def _model_lines(model: ModelFacts) -> Iterator[tuple[str, str]]:
    from specaudit.report.numbers import parameters

    yield "model", f"{model.source}: {model.architecture}, {parameters(model.parameters)} parameters"
    yield "weights", f"{_size(model.weight_bytes)}, {model.dtype} on {model.device}"


def _draft_lines(draft: ModelFacts | str) -> Iterator[tuple[str, str]]:
    if isinstance(draft, str):
        yield "drafter", f"{draft}, no model"
    else:
        yield from _model_lines(draft)


def _tap_lines(probe: TargetProbe) -> Iterator[tuple[str, str]]:
    taps = probe.taps
    if probe.error is not None:
        yield "failed", probe.error
    for label, count in (
        ("ids", taps.steps_with_ids),
        ("positions", taps.steps_with_positions),
        ("cache writes", taps.steps_with_writes),
        ("logits", taps.steps_with_logits),
    ):
        yield label, f"seen in {count} of {taps.steps} steps"
    yield "attention", f"seen in {taps.attention_layers_seen} of {taps.attention_layers} layers"
    if not taps.obstacles:
        yield "inner state", "will be observed"
    for obstacle in taps.obstacles:
        yield "inner state", f"will be unobserved: {obstacle}"


def _decoder_lines(probe: DecoderProbe) -> Iterator[tuple[str, str]]:
    yield "decoder", probe.decoder
    yield "outputs", _counts(probe.verdicts)
    yield "inner state", _counts(probe.syncs)
    for reason in probe.reasons:
        yield "because", reason


def _cost_lines(probe: TargetProbe, memory: MemoryEstimate) -> Iterator[tuple[str, str]]:
    if probe.tokens_per_second is not None:
        speed = probe.tokens_per_second
        seconds = RUN_PROMPTS * RUN_TOKENS / speed
        yield "speed", f"{speed:.3g} tokens a second at batch 1, traced, in this one probe"
        yield "reference", f"about {seconds:.2g} s for {RUN_PROMPTS} prompts of {RUN_TOKENS} new tokens at that speed"
    yield "weights", f"{_size(memory.weight_bytes)} in all"
    yield "cache", f"{_size(memory.kv_bytes_per_token)} a token and row"
    yield "", f"{_size(memory.kv_bytes)} at batch {memory.batch_size} and {memory.length} tokens a row"


def _positions(target: TargetFacts) -> str:
    if target.position_limit is not None:
        return f"{target.positions} of {target.position_limit}: longer texts are refused"
    made_for = "" if target.trained_length is None else f", made for {target.trained_length} tokens"
    return f"{target.positions}{made_for}"


def _windows(windows: Iterable[int | None]) -> str:
    counts = Counter(windows)
    layers = f"{counts.total()} layer{'' if counts.total() == 1 else 's'}"
    if set(counts) <= {None}:
        return f"{layers}, no window"
    parts = [f"{count} {'without a window' if window is None else f'of {window}'}" for window, count in counts.items()]
    return f"{layers} with windows: {', '.join(parts)}"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _size(count: int) -> str:
    """Return a number of bytes: `512 B`, `7.3 MiB`."""
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} GiB"
