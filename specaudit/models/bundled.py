"""Model pairs that come with specaudit: one folder a family, each with a `target` and a `draft` model directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from specaudit.bundled_files import bundled_folder
from specaudit.core.errors import ModelError, nearest

if TYPE_CHECKING:
    from pathlib import Path

Role = Literal["target", "draft"]


def bundled_families() -> list[str]:
    """Return the names of the bundled families, sorted; a folder counts once its target model has a config."""
    return sorted(config.parent.parent.name for config in bundled_folder("models").glob("*/target/config.json"))


def bundled_model(family: str, role: Role) -> Path:
    """Return the directory of the target or the draft of a bundled family.

    Raises:
        ModelError: there is no such family.
    """
    families = bundled_families()
    if family not in families:
        raise ModelError(
            f"no bundled model family '{family}'", where=f"bundled:{family}", way_out=nearest(family, families)
        )
    return bundled_folder("models") / family / role
