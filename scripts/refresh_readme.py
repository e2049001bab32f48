"""Run the demo and put its report into a Markdown file, between the two `demo` comments.

The times differ from run to run and the run directory's name with them; the name is written as `runs/<time>-...`.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

START, END = "<!-- demo: written by `make readme` -->", "<!-- end of demo -->"


def with_report(document: str, command: list[str], report: str) -> str:
    """Return `document` with the block between the comments replaced by `command` and its `report`."""
    before, _, rest = document.partition(START)
    _, marker, after = rest.partition(END)
    if not marker:
        raise ValueError(f"the document has no {START} ... {END}")
    report = re.sub(r"runs/\d{8}-\d{6}", "runs/<time>", report)
    lines = [line.rstrip() for line in report.strip().splitlines()]
    block = "\n".join(["```text", f"$ {' '.join(command)}", *lines, "```"])
    return f"{before}{START}\n\n{block}\n\n{END}{after}"


def main() -> int:
    """Run the demo and rewrite the file; return 0, or 1 where the run gave no report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("document", type=Path, help="Markdown file to rewrite")
    options, arguments = parser.parse_known_args()
    specaudit = Path(sys.executable).parent / "specaudit"
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    result = subprocess.run(  # noqa: S603 (our own command)
        [specaudit, *arguments], env=environment, stdout=subprocess.PIPE, text=True, encoding="utf-8", check=False
    )
    if result.returncode != 1:
        print(f"the demo ended with exit code {result.returncode}, not 1: nothing is written", file=sys.stderr)
        return 1
    text = options.document.read_text(encoding="utf-8")
    options.document.write_text(with_report(text, ["specaudit", *arguments], result.stdout), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
