"""Which run directories are one's own: a manifest from elsewhere must not make specaudit import code by itself."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from specaudit.cache_folder import cache_root
from specaudit.core.errors import UsageError
from specaudit.decoders.registry import BUILT_IN

if TYPE_CHECKING:
    from pathlib import Path

    from specaudit.core.stored_run import StoredRun


def claim_run(run_id: str) -> None:
    """Note that a run was started here; where the cache cannot be written, the run will count as a stranger's."""
    with suppress(OSError):
        path = _claim(run_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def check_code_is_allowed(stored: StoredRun, *, allow_code: bool) -> None:
    """Raise UsageError where a stranger's manifest would import decoders or model code."""
    decoders = [name for name in stored.plan.decoders if name not in BUILT_IN]
    if allow_code or _is_own(stored) or not (decoders or stored.plan.trust_remote_code):
        return
    what = f"import decoder '{decoders[0]}'" if decoders else "run code shipped with a model"
    raise UsageError(
        f"this run was started elsewhere and would {what}",
        where=str(stored.directory.path),
        way_out="look at that code, then give --allow-code.",
    )


def _is_own(stored: StoredRun) -> bool:
    plain = stored.run_id.replace("-", "").isalnum()
    return plain and _claim(stored.run_id).is_file()


def _claim(run_id: str) -> Path:
    return cache_root() / "own-runs" / run_id
