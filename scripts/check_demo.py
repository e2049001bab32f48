"""Say whether a demo came out as it must: `bsp` and `dsd` caught, the two correct decoders lossless.

The demo's runs end with exit code 1, because those two are published baselines with known faults; that is a success of
the demo, and any other outcome is not. Knows nothing of specaudit but the JSON report.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

EXPECTED = {"greedy-batch": "lossless", "eqspec": "lossless", "bsp": "failed", "dsd": "failed"}
"""The verdict that each decoder must have at every batch size."""


def problems(report: dict[str, Any], *, exit_code: int) -> list[str]:
    """Return what differs from the expected outcome; empty when nothing does."""
    found = [] if exit_code == 1 else [f"the run ended with exit code {exit_code}, not 1"]
    verdicts: dict[str, list[tuple[int, str]]] = {}
    for arm in report["arms"]:
        verdicts.setdefault(arm["decoder"], []).append((arm["batch_size"], arm["verdict"]))
    if sorted(verdicts) != sorted(EXPECTED):
        found.append(f"the report has {', '.join(verdicts) or 'no decoder'}, not {', '.join(EXPECTED)}")
    for decoder, arms in verdicts.items():
        expected = EXPECTED.get(decoder)
        found += [
            f"{decoder} at batch {batch_size} is {verdict}, not {expected}"
            for batch_size, verdict in arms
            if expected is not None and verdict != expected
        ]
    found += [
        f"dsd at batch {arm['batch_size']} has no POS or RECT finding"
        for arm in report["arms"]
        if arm["decoder"] == "dsd" and arm["batch_size"] > 1
        if not arm["violated_checks"]["POS"] and not arm["violated_checks"]["RECT"]
    ]
    return found


def main() -> int:
    """Check the report named on the command line; return 0 when it is as expected, else 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path, help="JSON report of the demo's run")
    parser.add_argument("--exit-code", type=int, required=True, help="exit code of the demo's run")
    options = parser.parse_args()
    try:
        report = json.loads(options.report.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        print(f"demo: no report (exit code {options.exit_code}): {error}", file=sys.stderr)
        return 1
    found = problems(report, exit_code=options.exit_code)
    if found:
        print(f"demo: not as expected: {'; '.join(found)}", file=sys.stderr)
        return 1
    print(
        "demo: as expected. bsp and dsd fail: they have the faults of the published baselines. The others are lossless."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
