"""`--json`: the report as a document, in a file or on standard output."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specaudit.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping


def check_json_file(name: str | None) -> None:
    """Raise UsageError where the report could not be written, before the work starts."""
    if name is None or name == "-":
        return
    try:
        with Path(name).open("a", encoding="utf-8"):
            pass
    except OSError as error:
        raise UsageError(
            f"cannot write to '{name}': {error.strerror or error}",
            where="--json",
            way_out="name a file that you may write to, or - for standard output.",
        ) from error


def write_json(report: Mapping[str, Any], name: str) -> None:
    """Write `report` to the file `name` in UTF-8, or to standard output, whose encoding may be any, for `-`."""
    text = json.dumps(report, ensure_ascii=name == "-", indent=2) + "\n"
    if name == "-":
        sys.stdout.write(text)
    else:
        try:
            Path(name).write_text(text, encoding="utf-8", errors="replace")
        except OSError as error:
            print(f"warning: --json: cannot write to '{name}': {error.strerror or error}", file=sys.stderr)
