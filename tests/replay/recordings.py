"""Recordings made by hand, and the command over them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cli.command import Result, specaudit

WORDS = ("plain", "long", "short", "right", "early", "late")


def lines(count: int = 6) -> list[dict[str, Any]]:
    """Return the lines of a recording with ids and texts."""
    return [
        {
            "id": f"q{number}",
            "prompt_ids": [1, 50, 60 + number],
            "output_ids": [20 + number, 11, 12, 13, 30 + number, 14, 2],
            "text": f"The answer number {number} is {WORDS[number % len(WORDS)]} enough for today",
            "category": ("math", "writing")[number % 2],
        }
        for number in range(count)
    ]


def without(recording: list[dict[str, Any]], *fields: str) -> list[dict[str, Any]]:
    """Return a copy of a recording without these fields."""
    return [{name: value for name, value in line.items() if name not in fields} for line in recording]


def texts_only(recording: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a recording of the kind that a server without token ids gives."""
    return [{"prompt": f"Question {line['id']}?", **line} for line in without(recording, "prompt_ids", "output_ids")]


def write(name: str, recording: list[Any]) -> str:
    """Write a recording into the current folder and return its name."""
    Path(name).write_text("".join(json.dumps(line) + "\n" for line in recording), encoding="utf-8")
    return name


def replay(recording: list[Any], reference: list[Any], *options: str) -> Result:
    """Compare two recordings with the command."""
    return specaudit("replay", write("a.jsonl", recording), "--reference", write("b.jsonl", reference), *options)


def verdicts(result: Result) -> list[str]:
    """Return the lines of a report that give verdicts."""
    return [line for line in result.stdout.splitlines() if line.startswith("specaudit: ")]
