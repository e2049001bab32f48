"""The entry point: the application and the one place that turns errors into messages."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Annotated

import typer

from specaudit import __version__
from specaudit.cli.decoders import decoders
from specaudit.cli.doctor import doctor
from specaudit.cli.explain import explain
from specaudit.cli.replay import replay
from specaudit.cli.run import run
from specaudit.cli.selftest import selftest
from specaudit.core.errors import SpecauditError, printable
from specaudit.core.gate import EXIT_USAGE

app = typer.Typer(
    name="specaudit",
    help="Audit speculative decoders: does the output equal the target's own greedy output, and if not, where and why?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(run)
app.command()(explain)
app.command()(replay)
app.command()(decoders)
app.command()(doctor)
app.command()(selftest)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"specaudit {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Set what holds for every command."""
    if debug:
        os.environ["SPECAUDIT_DEBUG"] = "1"


def main() -> None:
    """Run the command line; every error that a user can act on ends here."""
    try:
        app(prog_name="specaudit")
    except SpecauditError as error:
        if os.environ.get("SPECAUDIT_DEBUG"):
            traceback.print_exc()
        _print_error(error)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.stderr.close()  # the reader has left; there is nobody to tell
        sys.exit(EXIT_USAGE)
    except Exception as error:
        if os.environ.get("SPECAUDIT_DEBUG"):
            traceback.print_exc()
        print(f"error: {type(error).__name__}: {printable(str(error))}", file=sys.stderr)
        print("  this is a fault in specaudit; run again with --debug before the command to see where", file=sys.stderr)
        for note in getattr(error, "__notes__", ()):
            print(f"  {printable(str(note))}", file=sys.stderr)
        sys.exit(EXIT_USAGE)


def _print_error(error: SpecauditError) -> None:
    where = f"{error.where}: " if error.where else ""
    print(f"error: {printable(where + error.message)}", file=sys.stderr)
    if error.way_out:
        print(f"  {printable(error.way_out)}", file=sys.stderr)


if __name__ == "__main__":
    main()
