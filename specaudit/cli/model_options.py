"""Options that say how models are loaded, the same in every command that loads them."""

from __future__ import annotations

from typing import Annotated

import typer

MODELS = "Models"
"""Heading of these options in the help."""

Dtype = Annotated[
    str | None,
    typer.Option(
        help="auto, float32, bfloat16, float16 or float64. Default: float32 on a CPU, else the checkpoint's.",
        rich_help_panel=MODELS,
    ),
]
Device = Annotated[
    str | None, typer.Option(help="cpu, cuda, mps, ... Default: the best available.", rich_help_panel=MODELS)
]
Attn = Annotated[
    str, typer.Option(help="Attention implementation, by its name in transformers.", rich_help_panel=MODELS)
]
Revision = Annotated[str | None, typer.Option(help="Revision of a Hub target.", rich_help_panel=MODELS)]
TrustRemoteCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="Run code shipped with a model.", rich_help_panel=MODELS)
]
AllowPickle = Annotated[bool, typer.Option("--allow-pickle", help="Load pickled weights.", rich_help_panel=MODELS)]
Threads = Annotated[
    int | None, typer.Option(help="Torch threads. Default: 1 for small models on a CPU.", rich_help_panel=MODELS)
]
