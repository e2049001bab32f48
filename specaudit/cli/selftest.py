"""`specaudit selftest`: known faults put into a correct decoder, to see what the auditor makes of them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from specaudit.cli.lists import names
from specaudit.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from specaudit.selftest.subjects import Subject

DEFAULT_TARGET = "bundled:llama"


def selftest(
    target: Annotated[
        str | None,
        typer.Option(
            help="Target: bundled:FAMILY, a directory, a .gguf file or a Hub id. Default: bundled:llama, unless "
            "architectures are named."
        ),
    ] = None,
    draft: Annotated[
        str | None,
        typer.Option(help="Draft model for the legal variants, as --target. Default: the bundled target's own."),
    ] = None,
    architecture: Annotated[
        str | None, typer.Option(help="Small random models instead, comma-separated: llama, gpt2, mistral, ...")
    ] = None,
    faults: Annotated[
        str | None, typer.Option(help="Faults by name or by group, comma-separated. Default: all.")
    ] = None,
    mutants: Annotated[int, typer.Option(help="Random changes of the cache that are tried as well.")] = 40,
    seed: Annotated[int, typer.Option(help="Seed of drafts and mutants.")] = 0,
    json: Annotated[
        str | None, typer.Option(help="Write all that was found as JSON to this file; - for standard output.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, and no advice of the libraries.")] = False,
) -> None:
    """Put known faults into a correct decoder, one at a time, and say whether each is caught and named right.

    Exit code: 0 when all were, every legal variant is certified and no random change survived; 1 otherwise; 2 bad usage.
    """
    from rich.console import Console

    from specaudit.cli.json_file import check_json_file, write_json
    from specaudit.core.gate import EXIT_FINDING
    from specaudit.faults.fault import Layout
    from specaudit.report.selftest_table import print_subject, print_totals, selftest_document
    from specaudit.selftest.plan import audit_subject, choose_faults

    if mutants < 0:
        raise UsageError(f"{mutants} is not a number of mutants", where="--mutants", way_out="give 0 or more.")
    if seed < 0:
        raise UsageError(f"{seed} is not a seed", where="--seed", way_out="give 0 or more.")
    chosen = choose_faults(None if faults is None else names(faults, option="--faults"))
    check_json_file(json)
    console = Console()
    outcomes = []
    for subject in _subjects(target, draft, architecture):
        steps = len(chosen) * len(Layout) + mutants
        outcome = audit_subject(
            subject, chosen, mutants=mutants, seed=seed, on_step=_progress(subject.name, steps, quiet=quiet)
        )
        outcomes.append(outcome)
        if json != "-":
            print_subject(console, outcome)
    is_passed = all(outcome.is_passed for outcome in outcomes)
    if json != "-":
        print_totals(console, outcomes)
    if json is not None:
        write_json(selftest_document(outcomes), json)
    if not is_passed:
        raise typer.Exit(EXIT_FINDING)


def _subjects(target: str | None, draft: str | None, architecture: str | None) -> Iterator[Subject]:
    """Return the models under test, each made when its turn comes; raise UsageError first for one that is unknown."""
    from specaudit.selftest.subjects import check_architecture, loaded_subject, random_subject

    architectures = () if architecture is None else names(architecture, option="--architecture")
    for name in architectures:
        check_architecture(name)
    if target is None and not architectures:
        target = DEFAULT_TARGET
    if draft is not None and target is None:
        raise UsageError("random models have no draft of their own", where="--draft", way_out="leave it out.")

    def made() -> Iterator[Subject]:
        if target is not None:
            yield loaded_subject(target, draft)
        for name in architectures:
            yield random_subject(name)

    return made()


def _progress(name: str, steps: int, *, quiet: bool) -> Callable[[], None]:
    """Return what to call after each step: a line to standard error now and then."""
    done = 0

    def note() -> None:
        nonlocal done
        done += 1
        if not quiet and done % 50 == 0:
            print(f"{name}: {min(done, steps)} of {steps}", file=sys.stderr, flush=True)

    return note
