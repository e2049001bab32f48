"""From what `--decoder` says to a function that can be called."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from dataclasses import dataclass
from hashlib import sha256
from inspect import Parameter, getsourcefile, signature, unwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specaudit.core.errors import DecoderError, nearest
from specaudit.decoders.registry import BUILT_IN, DraftNeed

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

REQUIRED_KEYWORDS = ("max_new_tokens", "draft_tokens", "eos_token_ids", "pad_token_id")
OPTIONAL_KEYWORDS = ("batch_size", "generation_config")
"""Passed to a function that names them, never through `**options`."""

SIGNATURE = (
    "decode(target, draft, tokenizer, prompts, *, max_new_tokens, draft_tokens, eos_token_ids, pad_token_id)"
    " -> list[list[int]]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedDecoder:
    """A decoder ready to be called."""

    name: str
    """As named on the command line."""

    function: Callable[..., Any]
    """The function, with the documented signature."""

    draft: DraftNeed
    """What it drafts with; a function from outside is taken to need a model."""

    takes_batch_size: bool
    """Whether it names a `batch_size` parameter: then it gets a whole unit and limits its active rows itself."""

    takes_generation_config: bool
    """Whether it names a `generation_config` parameter: then it can apply a model's processors."""

    max_batch_size: int | None
    """Most prompts that it decodes together, or None for no limit."""


def resolve_decoder(name: str) -> ResolvedDecoder:
    """Return the decoder called `name`: a built-in, `module:function` or `file.py:function`.

    Raises DecoderError when there is no such decoder, its code cannot be imported, or its parameters do not fit.
    """
    info = BUILT_IN.get(name)
    if info is not None:
        return _resolved(name, _load(info.entry_point), info.draft, max_batch_size=info.max_batch_size)
    check_decoder_name(name)
    function = _load(name)
    _check_signature(name, function)
    return _resolved(name, function, DraftNeed.MODULE, max_batch_size=None)


def check_decoder_name(name: str) -> None:
    """Raise DecoderError for a name that cannot be a decoder's, without importing anything."""
    if name in BUILT_IN:
        return
    if ":" not in name:
        close = nearest(name, BUILT_IN) or ""
        raise DecoderError(
            f"unknown decoder '{name}'",
            where="--decoder",
            way_out=f"{close}{'' if close.endswith('?') else '.'} Your own code goes as module:function or "
            "path/to/file.py:function.",
        )
    place, _, attribute = name.rpartition(":")
    if not place or not attribute:
        raise DecoderError(
            f"'{name}' names no function",
            where="--decoder",
            way_out="write module:function or path/to/file.py:function.",
        )
    if place.endswith(".py") and not Path(place).is_file():
        raise DecoderError(
            f"there is no file '{place}'", where="--decoder", way_out="check the path; it is taken from this folder."
        )


def source_digest(function: Callable[..., Any]) -> str | None:
    """Return the SHA-256 of the file that defines a decoder, or None where it has none."""
    try:
        file = getsourcefile(unwrap(function))
    except TypeError:
        return None
    return None if file is None else sha256(Path(file).read_bytes()).hexdigest()


def _resolved(
    name: str, function: Callable[..., Any], draft: DraftNeed, *, max_batch_size: int | None
) -> ResolvedDecoder:
    named = _parameter_names(function)
    return ResolvedDecoder(
        name=name,
        function=function,
        draft=draft,
        takes_batch_size="batch_size" in named,
        takes_generation_config="generation_config" in named,
        max_batch_size=max_batch_size,
    )


def _load(entry_point: str) -> Callable[..., Any]:
    place, _, attribute = entry_point.rpartition(":")
    module = _load_file(Path(place)) if place.endswith(".py") else _load_module(place)
    function = getattr(module, attribute, None)
    if function is None:
        functions = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise DecoderError(
            f"'{place}' has no function '{attribute}'", where="--decoder", way_out=nearest(attribute, functions)
        )
    if not callable(function):
        raise DecoderError(
            f"'{attribute}' in '{place}' is not a function", where="--decoder", way_out=f"write {SIGNATURE}."
        )
    return function  # type: ignore[no-any-return]


def _load_module(name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # a decoder beside the user is found, as `python -m` would find it
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise DecoderError(
                f"there is no module '{name}'",
                where="--decoder",
                way_out="run from the folder that holds it, install it, or give its path: path/to/file.py:function.",
            ) from error
        raise DecoderError(
            f"importing '{name}' failed: {error}", where="--decoder", way_out=f"install '{error.name}'."
        ) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _import_failure(name, error) from error


def _load_file(path: Path) -> ModuleType:
    name = f"specaudit_decoder_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise DecoderError(f"'{path}' is not Python source", where="--decoder", way_out="give a .py file.")
    module = importlib.util.module_from_spec(spec)
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # its own imports work, as when it is run as a script
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a script without a guard may end in sys.exit
        raise _import_failure(str(path), error) from error
    return module


def _import_failure(place: str, error: BaseException) -> DecoderError:
    return DecoderError(
        f"importing '{place}' failed: {type(error).__name__}: {error}",
        where="--decoder",
        way_out="run `python` on it to see where; --debug shows the traceback.",
    )


def _parameter_names(function: Callable[..., Any]) -> frozenset[str]:
    try:
        return frozenset(signature(function).parameters)
    except (TypeError, ValueError):
        return frozenset()


def _check_signature(name: str, function: Callable[..., Any]) -> None:
    try:
        parameters = signature(function).parameters
    except (TypeError, ValueError):
        return  # built in C: calling it will tell
    takes_any_keyword = any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters.values())
    missing = [keyword for keyword in REQUIRED_KEYWORDS if keyword not in parameters and not takes_any_keyword]
    positional = [
        parameter
        for parameter in parameters.values()
        if parameter.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    ]
    takes_any_positional = any(parameter.kind is Parameter.VAR_POSITIONAL for parameter in parameters.values())
    if missing or (len(positional) < 4 and not takes_any_positional):
        lack = f"lacks {', '.join(missing)}" if missing else "takes fewer than four positional parameters"
        raise DecoderError(f"'{name}' {lack}", where="--decoder", way_out=f"write {SIGNATURE}.")
    allowed = {*REQUIRED_KEYWORDS, *OPTIONAL_KEYWORDS}
    extra = [
        parameter.name
        for index, parameter in enumerate(parameters.values())
        if parameter.default is Parameter.empty
        and parameter.kind not in (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
        and parameter.name not in allowed
        and (parameter.kind is Parameter.KEYWORD_ONLY or index >= 4)
    ]
    if extra:
        raise DecoderError(
            f"'{name}' needs {', '.join(extra)}, which specaudit does not pass",
            where="--decoder",
            way_out=f"give it a default, or write {SIGNATURE}.",
        )
