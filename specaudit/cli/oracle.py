"""`specaudit replay --target`: recorded outputs judged by the target itself."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from specaudit.cli.json_file import check_json_file, write_json
from specaudit.core.errors import InputError, ModelError, SpecauditError, UsageError, nearest
from specaudit.core.score_gate import decide_scores
from specaudit.core.scores import PromptedOutput, Replay, ScoredOutput
from specaudit.engines.recordings import read_recording
from specaudit.models.device import choose_dtype
from specaudit.models.loading import load_target
from specaudit.oracle.floor import chance_of_false_alarm, rounding_of_logits, share_above
from specaudit.oracle.judgement import ControlResult, judge_controls, judge_output
from specaudit.oracle.replay import copy_in, machine_epsilon, replay
from specaudit.report.numbers import counted, parameters
from specaudit.report.score_report import floor_text, print_scores, shown_token_ids
from specaudit.settings import generation_settings, position_limit
from specaudit.threads import torch_threads

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from specaudit.core.gate import Decision
    from specaudit.core.scores import NoiseFloor
    from specaudit.engines.recordings import RecordedOutput, Recording
    from specaudit.models.loaded import LoadedModel
    from specaudit.models.options import LoadOptions

ORACLE_DTYPES = ("float32", "float64")
"""What `--oracle-dtype` takes."""

SCORES_SCHEMA_VERSION = 1
"""Version of the document that `--json` writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleOptions:
    """What `specaudit replay --target` was asked for."""

    recording: str
    """Outputs under audit: a file, or a run directory."""

    reference: str | None
    """Outputs of the same engine without speculation, or None."""

    target: str
    """The target as given."""

    load: LoadOptions
    """How to load it."""

    oracle_dtype: str | None
    """One of `ORACLE_DTYPES`, or None for the target's own type."""

    eos_token_ids: frozenset[int] | None
    """End-of-sequence ids given by the user, or None for the target's; empty to ignore end of sequence."""

    threads: int | None
    """Torch threads, or None for what suits the target."""

    json: str | None
    """File for the report as JSON, `-` for standard output, or None."""

    details: int
    """Most outputs shown in full."""


def judge_recording(options: OracleOptions) -> int:
    """Judge a recording by the target's own logits, print the report and return the exit code."""
    if options.oracle_dtype is not None and options.oracle_dtype not in ORACLE_DTYPES:
        raise UsageError(
            f"unknown type '{options.oracle_dtype}'",
            where="--oracle-dtype",
            way_out=nearest(options.oracle_dtype, ORACLE_DTYPES),
        )
    candidate = read_recording(Path(options.recording))
    controls = None if options.reference is None else read_recording(Path(options.reference))
    if controls is not None:
        _check_other_file(candidate, controls)
    for one in (candidate, controls):
        _check_ids(one)
    check_json_file(options.json)
    target = load_target(options.target, options=options.load)
    with torch_threads(options.threads, target):
        return _judge(options, target, candidate, controls)


def _judge(options: OracleOptions, target: LoadedModel, candidate: Recording, controls: Recording | None) -> int:
    eos = target.eos_token_ids if options.eos_token_ids is None else options.eos_token_ids
    oracle = _Oracle(target, options.oracle_dtype)
    control: ControlResult | None = None
    replays = oracle.score(candidate)
    if controls is not None:
        measured = oracle.score(controls)
        resolution = oracle.resolution([*replays.values(), *measured.values()])
        control = judge_controls(tuple(measured.values()), eos_token_ids=eos, resolution=resolution)
    floor = None if control is None else control.floor
    outputs = tuple(
        judge_output(name, _prompted(candidate.outputs[name]), found, eos_token_ids=eos, floor=floor)
        for name, found in replays.items()
    )
    decision = decide_scores(outputs, floor=floor)
    sides = _sides(candidate, controls, target, oracle, eos, control)
    print_scores(
        Console(stderr=options.json == "-"),
        sides,
        outputs,
        decision,
        prompts=len({output.prompt_ids for output in candidate.outputs.values()}),
        details=options.details,
        token_texts=_token_texts(target.tokenizer, shown_token_ids(outputs, options.details)),
    )
    if options.json is not None:
        files = {"candidate": candidate.name, "reference": None if controls is None else controls.name}
        write_json(_document(outputs, decision, files, target, oracle, control), options.json)
    return decision.exit_code


class _Oracle:
    """The target in the type in which it judges."""

    def __init__(self, target: LoadedModel, dtype: str | None) -> None:
        self.target = target
        asked = target.dtype if dtype is None else choose_dtype(dtype, target.device)
        self.model = copy_in(target.model, asked or target.dtype)
        self.limit = position_limit(target.model)

    @property
    def dtype(self) -> str:
        """Return the name of the type that it computes in."""
        return str(self.model.dtype).removeprefix("torch.")

    def score(self, recording: Recording) -> dict[str, Replay]:
        """Return what the target says of each output, by id; outputs that cannot be scored have an error."""
        obstacles = {name: self._obstacle(output) for name, output in recording.outputs.items()}
        names = [name for name, obstacle in obstacles.items() if obstacle is None]
        prompted = [_prompted(recording.outputs[name]) for name in names]
        try:
            replays = replay(self.model, prompted, pad_token_id=self.target.pad_token_id)
        except SpecauditError:
            raise
        except RuntimeError as error:  # what a kernel refuses, and memory that ran out
            reason = str(error).partition("\n")[0]
            raise ModelError(
                f"the target cannot be replayed: {reason}",
                where=self.target.source,
                way_out="try --attn sdpa or --attn eager, another --oracle-dtype or --device cpu; --debug shows where.",
            ) from error
        scored = dict(zip(names, replays, strict=True))
        return {name: scored.get(name, Replay(scores=(), error=obstacle)) for name, obstacle in obstacles.items()}

    def resolution(self, replays: Sequence[Replay]) -> float:
        """Return the regret that the coarser of the target's type and the oracle's explains by rounding."""
        largest = [score.largest_logit for found in replays for score in found.scores]
        return rounding_of_logits(largest, epsilon=machine_epsilon(self.target.model, self.model))

    def _obstacle(self, output: RecordedOutput) -> str | None:
        """Return why an output cannot be scored, or None; ids that the target does not have are an input error."""
        if output.error is not None:
            return output.error
        prompted = _prompted(output)
        ids = (*prompted.prompt_ids, *prompted.output_ids)
        if max(ids, default=0) >= self.target.vocab_size:
            raise InputError(
                f"it holds token id {max(ids)}, and the target's vocabulary has {self.target.vocab_size}",
                where=output.where,
                way_out="name the model that the outputs are from with --target.",
            )
        if not prompted.prompt_ids:
            return "the prompt has no tokens: nothing predicts the first one of the output"
        if self.limit is not None and len(ids) - 1 > self.limit:
            return f"{len(ids)} tokens are more than the target's table of {self.limit} positions"
        return None


def _check_other_file(candidate: Recording, controls: Recording) -> None:
    if Path(candidate.name).samefile(controls.name):
        raise UsageError(
            "outputs cannot excuse themselves: this is the recording under audit",
            where="--reference",
            way_out="give outputs of the same engine without speculation, or leave the option out.",
        )


def _check_ids(recording: Recording | None) -> None:
    """Refuse texts: made into ids here they might be others than the engine's, and be accused for that."""
    for output in () if recording is None else recording.outputs.values():
        lacking = [name for name in ("prompt_ids", "output_ids") if getattr(output, name) is None]
        if lacking and output.error is None:
            raise InputError(
                f"no {' and no '.join(lacking)}: with --target, tokens are judged, and a text may have several spellings",
                where=output.where,
                way_out="record the token ids that the engine was given and returned, or compare texts without --target.",
            )


def _prompted(output: RecordedOutput) -> PromptedOutput:
    return PromptedOutput(prompt_ids=output.prompt_ids or (), output_ids=output.output_ids or ())


def _sides(
    candidate: Recording,
    controls: Recording | None,
    target: LoadedModel,
    oracle: _Oracle,
    eos_token_ids: Collection[int],
    control: ControlResult | None,
) -> dict[str, str]:
    """Return what is said above the findings, by label."""
    model = target.model
    size = parameters(sum(parameter.numel() for parameter in model.parameters()))
    dtype = str(target.dtype).removeprefix("torch.")
    ends = ", ".join(map(str, sorted(eos_token_ids))) or "ignored"
    left_out = generation_settings(model)
    sides = {
        "recording": f"{candidate.name}: {counted(len(candidate.outputs), 'output')}",
        "target": f"{target.source}: {type(model).__name__}, {size} parameters, {dtype} on {target.device},"
        f" attention {target.attn}",
        "oracle": f"argmax of raw logits in {oracle.dtype}, end of sequence {ends}",
    }
    if left_out:
        sides["left out"] = f"{', '.join(left_out)} (generation config; greedy ignores it)"
    if controls is not None:
        sides["reference"] = f"{controls.name}: {counted(len(controls.outputs), 'output')}"
    sides["floor"] = _floor_words(control)
    return sides


def _floor_words(control: ControlResult | None) -> str:
    if control is None:
        return "unknown: --reference takes outputs of the same engine without speculation"
    if control.floor is None:
        return f"unknown: the reference gives none: {control.problem}"
    return floor_text(control.floor, chance_of_false_alarm=chance_of_false_alarm(control.floor))


def _token_texts(tokenizer: Any, ids: Collection[int]) -> dict[int, str]:
    """Return the text of tokens, leading space included; tokenizers that strip one do so at the anchor."""
    anchor = tokenizer("a", add_special_tokens=False)["input_ids"][-1:]
    before = len(_text(tokenizer, anchor))
    return {token: _text(tokenizer, [*anchor, token])[before:] for token in sorted(ids)}


def _text(tokenizer: Any, ids: Sequence[int]) -> str:
    return str(tokenizer.decode(list(ids), skip_special_tokens=False))


def _document(
    outputs: Sequence[ScoredOutput],
    decision: Decision,
    files: Mapping[str, str | None],
    target: LoadedModel,
    oracle: _Oracle,
    control: ControlResult | None,
) -> dict[str, Any]:
    """Return the report as plain JSON; an infinite regret, and what was not measured, are null."""
    regrets = [output.largest_regret for output in outputs if output.largest_regret is not None]
    floor = None if control is None else control.floor
    return {
        "schema_version": SCORES_SCHEMA_VERSION,
        "verdict": decision.verdict.value,
        "exit_code": decision.exit_code,
        "reasons": list(decision.reasons),
        "recordings": dict(files),
        "target": {
            "source": target.source,
            "digest": target.digest,
            "dtype": str(target.dtype).removeprefix("torch."),
            "device": str(target.device),
            "attn": target.attn,
            "oracle_dtype": oracle.dtype,
        },
        "floor": None if floor is None else _floor_document(floor),
        "floor_problem": None if control is None else control.problem,
        "totals": {
            "outputs": len(outputs),
            "unmeasured": sum(output.error is not None for output in outputs),
            "tokens": sum(output.tokens for output in outputs),
            "ties": sum(output.ties for output in outputs),
            "departures": sum(len(output.departures) for output in outputs),
            "largest_regret": _finite(max(regrets, default=None)),
        },
        "outputs": [_output_document(output) for output in outputs],
    }


def _floor_document(floor: NoiseFloor) -> dict[str, Any]:
    return {
        **asdict(floor),
        "excused": floor.excused,
        "accused": floor.accused,
        "chance_of_false_alarm": chance_of_false_alarm(floor),
        "share_above": share_above(floor),
    }


def _output_document(output: ScoredOutput) -> dict[str, Any]:
    departures = [
        {**asdict(one.score), "regret": _finite(one.score.regret), "zone": None if one.zone is None else one.zone.value}
        for one in output.departures
    ]
    return {**asdict(output), "largest_regret": _finite(output.largest_regret), "departures": departures}


def _finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None
