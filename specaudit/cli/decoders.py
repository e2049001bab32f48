"""`specaudit decoders`: what `--decoder` takes."""

from __future__ import annotations


def decoders() -> None:
    """List the decoders that have a name, and how to name your own."""
    from rich.console import Console
    from rich.table import Table

    from specaudit.decoders.registry import BUILT_IN

    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("decoder", "draft", "expected", "what"):
        table.add_column(column, no_wrap=column != "what")
    for info in BUILT_IN.values():
        table.add_row(info.name, info.draft.value, "lossless" if info.is_lossless else "caught", info.summary)
    console = Console()
    console.print(table)
    console.print(
        "\nYour own: --decoder module:function or path/to/file.py:function, with\n"
        "  def decode(target, draft, tokenizer, prompts, *, max_new_tokens, draft_tokens,\n"
        "             eos_token_ids, pad_token_id) -> list[list[int]]",
        markup=False,
        highlight=False,
    )
