"""Keeping transformers off stderr, and from doing more than it was asked for."""

from __future__ import annotations

import os
import warnings
from contextlib import contextmanager
from logging import ERROR
from typing import TYPE_CHECKING

from transformers.utils import logging

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Hold back transformers' progress bars and advice, and put both back afterwards.

    What matters in them (weights that are missing, for one) has to be checked and raised by the caller.
    """
    verbosity, has_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(ERROR)
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if has_bars:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Hold back what transformers, the Hub's client and torch log, draw and warn of, in a decoder's hands too."""
    with quiet_transformers(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"(transformers|huggingface_hub|torch)\b")
        yield


@contextmanager
def no_conversion_service() -> Iterator[None]:
    """Keep transformers from asking a public service to convert a pickled model and open a pull request for it."""
    name = "DISABLE_SAFETENSORS_CONVERSION"
    before = os.environ.get(name)
    os.environ[name] = "true"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
