"""`specaudit run`: audit decoders on a prompt set."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specaudit.cli.lists import names, positive_integers, seeds, token_ids
from specaudit.cli.model_options import MODELS, AllowPickle, Attn, Device, Dtype, Revision, Threads, TrustRemoteCode
from specaudit.core.errors import UsageError

if TYPE_CHECKING:
    from specaudit.core.records import AuditPlan

WORK = "What to run"
OUTPUT = "Output"


RERUN = "Run again"

FIELD_OF_OPTION = {
    "decoder": "decoders",
    "batch_size": "batch_sizes",
    "field": "prompt_field",
    "category": "categories",
    "seed": "seeds",
    "eos_ids": "eos_token_ids",
    "ignore_eos": "eos_token_ids",
}
"""Options whose field in the plan has another name; every other option of the plan has its field's name."""


def run(
    context: typer.Context,
    target: Annotated[
        str,
        typer.Option(help="Target: bundled:FAMILY, a directory, a .gguf file or a Hub id.", rich_help_panel=MODELS),
    ] = "bundled:llama",
    draft: Annotated[
        str | None,
        typer.Option(
            help="Draft: as --target, or layers:N, noisy:SCALE, stress:RATE, ngram. Default: the bundled target's own.",
            rich_help_panel=MODELS,
        ),
    ] = None,
    decoder: Annotated[
        str,
        typer.Option(
            help="Decoders, comma-separated: names from `specaudit decoders`, module:function, file.py:function.",
            rich_help_panel=WORK,
        ),
    ] = "greedy-batch,eqspec",
    batch_size: Annotated[str, typer.Option(help="Batch sizes, comma-separated.", rich_help_panel=WORK)] = "1,4",
    draft_tokens: Annotated[
        str, typer.Option(help="Tokens proposed a round (K), comma-separated.", rich_help_panel=WORK)
    ] = "4",
    max_new_tokens: Annotated[int, typer.Option(help="Most tokens generated for a prompt.", rich_help_panel=WORK)] = 48,
    prompts: Annotated[
        str,
        typer.Option(
            help="Prompts: bundled (24), bundled:96, a .txt, .jsonl, .json, .csv or .tsv file, specbench:FILE, "
            "or - for standard input.",
            rich_help_panel=WORK,
        ),
    ] = "bundled",
    field: Annotated[
        str | None, typer.Option(help="Field or column that holds the prompt.", rich_help_panel=WORK)
    ] = None,
    gold_field: Annotated[
        str | None,
        typer.Option(
            help="Field or column that holds the gold answer. Default: gold, answer or reference.",
            rich_help_panel=WORK,
        ),
    ] = None,
    turn: Annotated[
        int,
        typer.Option(
            help="Turn of SpecBench questions: 1, or 2 after the reference's own answer to the first.",
            rich_help_panel=WORK,
        ),
    ] = 1,
    category: Annotated[
        str | None, typer.Option(help="Keep these categories of prompts, comma-separated.", rich_help_panel=WORK)
    ] = None,
    sample: Annotated[
        int | None, typer.Option(help="Draw this many prompts at random, see --seed.", rich_help_panel=WORK)
    ] = None,
    limit: Annotated[
        int | None, typer.Option(help="Take this many prompts, spread over the categories.", rich_help_panel=WORK)
    ] = None,
    chat_template: Annotated[
        bool,
        typer.Option("--chat-template", help="Wrap plain prompts in the chat template.", rich_help_panel=WORK),
    ] = False,
    eos_ids: Annotated[
        str | None, typer.Option(help="EOS ids, comma-separated, instead of the model's.", rich_help_panel=WORK)
    ] = None,
    ignore_eos: Annotated[
        bool, typer.Option("--ignore-eos", help="Decode past EOS up to --max-new-tokens.", rich_help_panel=WORK)
    ] = False,
    seed: Annotated[
        str,
        typer.Option(
            help="Seeds of noisy and stress drafts, comma-separated; the first is that of samples.",
            rich_help_panel=WORK,
        ),
    ] = "0",
    use_generation_config: Annotated[
        bool,
        typer.Option(
            "--use-generation-config",
            help="Apply penalties and suppressed tokens of the target's generation config, to both sides.",
            rich_help_panel=WORK,
        ),
    ] = False,
    trace: Annotated[
        str,
        typer.Option(
            help="full looks at every layer, which a certificate takes; fast at the first and the last.",
            rich_help_panel=WORK,
        ),
    ] = "full",
    case_timeout: Annotated[
        float | None, typer.Option(help="Seconds after which a decoder call is given up.", rich_help_panel=WORK)
    ] = None,
    dtype: Dtype = None,
    device: Device = None,
    attn: Attn = "sdpa",
    revision: Revision = None,
    draft_revision: Annotated[str | None, typer.Option(help="Revision of a Hub draft.", rich_help_panel=MODELS)] = None,
    trust_remote_code: TrustRemoteCode = False,
    allow_pickle: AllowPickle = False,
    threads: Threads = None,
    out: Annotated[
        Path | None, typer.Option(help="Run directory. Default: runs/<time>-<target>.", rich_help_panel=OUTPUT)
    ] = None,
    json: Annotated[
        str | None,
        typer.Option(help="Write the report as JSON to this file; - for standard output.", rich_help_panel=OUTPUT),
    ] = None,
    details: Annotated[int, typer.Option(help="Failures shown in full.", rich_help_panel=OUTPUT)] = 3,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress, and no advice of the libraries.", rich_help_panel=OUTPUT)
    ] = False,
    time_limit: Annotated[
        float | None,
        typer.Option(help="Seconds after which no further unit is started.", rich_help_panel=OUTPUT),
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Finish the run in this directory.", rich_help_panel=RERUN)
    ] = None,
    from_run: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="Run the plan of this run directory again, with the options given here changed.",
            rich_help_panel=RERUN,
        ),
    ] = None,
    case: Annotated[
        str | None,
        typer.Option(
            help="With --from: only the decoder call of this case, composed as it was.", rich_help_panel=RERUN
        ),
    ] = None,
    allow_code: Annotated[
        bool,
        typer.Option(
            "--allow-code", help="Let a run directory from elsewhere name code to run.", rich_help_panel=RERUN
        ),
    ] = False,
) -> None:
    """Run decoders beside the target's own greedy decoding and report every difference.

    Exit code: 0 passed, 1 a finding, 2 bad usage or input, 3 no evidence, 130 interrupted.
    """
    from specaudit.cli.rerun import plan_again, resumable
    from specaudit.cli.session import Output, run_session
    from specaudit.core.records import AuditPlan

    if eos_ids is not None and ignore_eos:
        raise UsageError("--eos-ids and --ignore-eos exclude each other", way_out="give one of them.")
    _require_positive(max_new_tokens, "--max-new-tokens")
    _require_positive(threads, "--threads")
    plan = AuditPlan(
        target=target,
        draft=draft,
        decoders=names(decoder, option="--decoder"),
        batch_sizes=positive_integers(batch_size, option="--batch-size"),
        draft_tokens=positive_integers(draft_tokens, option="--draft-tokens"),
        max_new_tokens=max_new_tokens,
        prompts=prompts,
        prompt_field=field,
        gold_field=gold_field,
        turn=turn,
        categories=None if category is None else names(category, option="--category"),
        sample=sample,
        limit=limit,
        chat_template=chat_template,
        dtype=dtype,
        device=device,
        attn=attn,
        revision=revision,
        draft_revision=draft_revision,
        trust_remote_code=trust_remote_code,
        allow_pickle=allow_pickle,
        eos_token_ids=() if ignore_eos else None if eos_ids is None else token_ids(eos_ids, option="--eos-ids"),
        seeds=seeds(seed, option="--seed"),
        use_generation_config=use_generation_config,
        trace=trace,
        case_timeout=case_timeout,
        threads=threads,
    )
    _require_seconds(time_limit, "--time-limit")
    _require_seconds(case_timeout, "--case-timeout")
    if details < 0:
        raise UsageError(f"{details} failures cannot be shown", where="--details", way_out="give 0 or more.")
    given = _given_fields(context)
    stored = only = None
    if resume is not None:
        stored = resumable(resume, given, is_alone=from_run is None and out is None, allow_code=allow_code)
        plan = stored.plan
    elif from_run is not None:
        plan, only = plan_again(from_run, case, {name: getattr(plan, name) for name in given}, allow_code=allow_code)
    elif case is not None:
        raise UsageError("--case needs the run that it is from", where="--case", way_out="give --from RUN as well.")
    folder = resume or out or _default_folder(plan)
    output = Output(folder=folder, json=json, details=details, quiet=quiet, time_limit=time_limit)
    raise typer.Exit(run_session(plan, output, resumed=stored, only=only))


def _given_fields(context: typer.Context) -> tuple[str, ...]:
    """Return the fields of the plan that options on the command line set."""
    from dataclasses import fields

    from specaudit.core.records import AuditPlan

    known = {field.name for field in fields(AuditPlan)}
    given = [
        FIELD_OF_OPTION.get(name, name)
        for name in context.params
        if (source := context.get_parameter_source(name)) is not None and source.name == "COMMANDLINE"
    ]
    return tuple(name for name in dict.fromkeys(given) if name in known)


def _require_seconds(value: float | None, option: str) -> None:
    if value is not None and not 0 < value < float("inf"):
        raise UsageError(f"{value:g} is not a time", where=option, way_out="give seconds above 0.")


def _require_positive(value: int | None, option: str) -> None:
    if value is not None and value < 1:
        raise UsageError(f"{value} is not a whole number of at least 1", where=option, way_out="give 1 or more.")


def _default_folder(plan: AuditPlan) -> Path:
    from specaudit.core.run_directory import default_path

    return default_path(Path("runs"), name=plan.target, started=datetime.now(UTC))
