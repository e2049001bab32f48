"""specaudit: a correctness auditor for speculative decoding.

`watch` is for scripts and tests; everything else is reached through the command line. Importing the package imports no
other library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from specaudit.watching.watch import Watch

__version__ = "0.1.0"
__all__ = ["__version__", "watch"]


def watch(model: PreTrainedModel) -> Watch:
    """Return a context manager in which every forward of `model` is watched, whoever decodes with it.

    Its `report(prompts, outputs)` says of every token of the outputs whether the model chose it at exactly its prefix.
    Raises UsageError for what is no causal language model of transformers.
    """
    from specaudit.watching.watch import Watch

    return Watch(model)
