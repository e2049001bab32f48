"""The real command line, called in this process."""

from __future__ import annotations

import io
import re
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest.mock import patch

from specaudit.cli.main import main


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a command left."""

    exit_code: int
    stdout: str
    stderr: str

    def __str__(self) -> str:
        """Return a snapshot: the exit code first, both streams, times and speeds made equal."""
        return f"exit code {self.exit_code}\n--- stdout\n{_steady(self.stdout)}--- stderr\n{_steady(self.stderr)}"


def specaudit(*arguments: str) -> Result:
    """Run `specaudit ARGUMENTS` and return what it did."""
    stdout, stderr = io.StringIO(), io.StringIO()
    environment = {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}
    with (
        patch.object(sys, "argv", ["specaudit", *arguments]),
        patch.dict("os.environ", environment),
        redirect_stdout(stdout),
        redirect_stderr(stderr),
    ):
        try:
            main()
            code = 0
        except SystemExit as exit_:
            code = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    return Result(exit_code=code, stdout=stdout.getvalue(), stderr=stderr.getvalue())


def _steady(text: str) -> str:
    text = re.sub(r"runs/\d{8}-\d{6}", "runs/<time>", text)
    return "".join(line.rstrip() + "\n" for line in text.splitlines())
