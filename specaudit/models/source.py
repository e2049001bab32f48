"""What `--target` and `--draft` can name: a bundled model, a directory, a GGUF file or a model on the Hub."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from specaudit.core.errors import ModelError, UsageError
from specaudit.models.bundled import bundled_model

if TYPE_CHECKING:
    from specaudit.models.bundled import Role

BUNDLED_PREFIX = "bundled:"
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
FORMS = "give bundled:FAMILY, a model directory, a .gguf file, or a Hub id such as org/name"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSource:
    """Where one model is loaded from."""

    given: str
    """As the user wrote it."""

    kind: Literal["bundled", "directory", "gguf", "hub"]
    """What it turned out to be."""

    location: str
    """Path of the directory or of the GGUF file, or the Hub id."""

    revision: str | None = None
    """Branch, tag or commit on the Hub, or None for the default; always None for local files."""


def parse_source(given: str, *, role: Role, revision: str | None = None) -> ModelSource:
    """Return where the model that `given` names is to be loaded from.

    An existing path wins over a Hub id of the same spelling. What does not exist is a Hub id, unless it can only have
    been meant as a path: absolute, starting with `.` or `~`, or ending in `.gguf` or a separator.

    Args:
        given: text of the option.
        role: which model of a bundled family to take, and which option to name in messages.
        revision: branch, tag or commit; for Hub ids only.

    Raises:
        ModelError: no such family, path, or possible Hub id; or a file that is not a GGUF file.
        UsageError: a revision for something that is not on the Hub.
    """
    source = _parse(given, role, revision)
    if revision is not None and source.kind != "hub":
        raise UsageError(
            f"a revision applies to a model on the Hub, and '{given}' is not one",
            where="--revision" if role == "target" else "--draft-revision",
            way_out="leave it out",
        )
    return source


def _parse(given: str, role: Role, revision: str | None) -> ModelSource:
    if given.startswith(BUNDLED_PREFIX):
        folder = bundled_model(given.removeprefix(BUNDLED_PREFIX), role)
        return ModelSource(given=given, kind="bundled", location=str(folder))
    path = Path(given).expanduser()
    if given and path.is_dir():
        return ModelSource(given=given, kind="directory", location=str(path))
    if given and path.is_file():
        return ModelSource(given=given, kind="gguf", location=str(_gguf_file(path, role)))
    if _looks_like_path(given):
        raise ModelError(f"no such model directory or file: '{given}'", where=f"--{role}", way_out=FORMS)
    if not HUB_ID.fullmatch(given):
        raise ModelError(f"'{given}' names no model", where=f"--{role}", way_out=FORMS)
    return ModelSource(given=given, kind="hub", location=given, revision=revision)


def _gguf_file(path: Path, role: Role) -> Path:
    if path.suffix.lower() == ".gguf":
        return path
    raise ModelError(
        f"'{path}' is a file, but not a .gguf file",
        where=f"--{role}",
        way_out=f"give the directory that holds it: '{path.parent}'",
    )


def _looks_like_path(given: str) -> bool:
    separators = tuple(separator for separator in (os.sep, os.altsep) if separator)
    return (
        Path(given).is_absolute()
        or given.startswith((".", "~"))
        or given.endswith(separators)
        or given.lower().endswith(".gguf")
    )
