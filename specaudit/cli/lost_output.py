"""A reader who leaves, or a full disk behind standard output, changes no verdict: the files have it, and the exit code."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def surviving_lost_output() -> Iterator[None]:
    """Run the block; when standard output is lost, say so where somebody may still read it, and go on."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
    except OSError as error:
        print(f"warning: standard output was lost: {error.strerror or error}", file=sys.stderr)
        _discard_output()


def _discard_output() -> None:
    """Let what is still buffered go nowhere, so that leaving the process raises nothing."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, sys.stdout.fileno())
    except (OSError, ValueError):  # standard output is no file: captured, or closed
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 (it lives as long as the process)
    finally:
        os.close(nowhere)
