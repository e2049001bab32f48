"""What a run ran on: versions and the state of the user's checkout; no environment, no host name."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import specaudit

LIBRARIES = ("torch", "transformers", "tokenizers")


def provenance() -> dict[str, Any]:
    """Return versions, platform and git state as a JSON-serialisable document."""
    return {
        "specaudit": specaudit.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "libraries": {name: _version(name) for name in LIBRARIES},
        "git": _git_state(),
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _git_state() -> dict[str, Any] | None:
    """Return commit and cleanliness of the checkout around the current directory, or None where there is none."""
    commit = _git("rev-parse", "HEAD")
    if commit is None:
        return None
    return {"commit": commit, "dirty": bool(_git("status", "--porcelain", "--untracked-files=no"))}


def _git(*arguments: str) -> str | None:
    try:
        result = subprocess.run(["git", *arguments], capture_output=True, text=True, timeout=10, check=False)  # noqa: S603, S607
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip() if result.returncode == 0 else None
