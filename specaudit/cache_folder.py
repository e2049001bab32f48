"""Where specaudit keeps what it can make again."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_dir


def cache_root() -> Path:
    """Return the cache folder: `SPECAUDIT_CACHE` where it is set, else the platform's. It need not exist yet."""
    return Path(os.environ.get("SPECAUDIT_CACHE") or user_cache_dir("specaudit")).expanduser()
