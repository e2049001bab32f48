"""What `--decoder` may name, and what it is told when it may not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from specaudit.core.errors import DecoderError
from specaudit.decoders.registry import BUILT_IN, DraftNeed
from specaudit.decoders.resolution import resolve_decoder

if TYPE_CHECKING:
    from pathlib import Path

GOOD = (
    "def decode(target, draft, tokenizer, prompts, *, max_new_tokens, draft_tokens, eos_token_ids, pad_token_id):\n"
    "    return []\n"
)


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_built_in_decoders_resolve(name: str) -> None:
    resolved = resolve_decoder(name)
    assert callable(resolved.function)
    assert resolved.draft is BUILT_IN[name].draft


def test_files_and_modules_beside_the_user(in_folder: Path) -> None:
    (in_folder / "sub").mkdir()
    (in_folder / "sub" / "mine.py").write_text("from beside import decode\n")
    (in_folder / "sub" / "beside.py").write_text(GOOD)
    (in_folder / "importable_decoder.py").write_text(GOOD.replace("pad_token_id", "pad_token_id, batch_size"))
    resolved = resolve_decoder("sub/mine.py:decode")
    assert resolved.draft is DraftNeed.MODULE
    assert not resolved.takes_batch_size
    assert resolve_decoder("importable_decoder:decode").takes_batch_size


def test_any_keywords_do_not_name_the_batch_size(in_folder: Path) -> None:
    (in_folder / "loose.py").write_text("def decode(target, draft, tokenizer, prompts, **options):\n    return []\n")
    assert not resolve_decoder("loose.py:decode").takes_batch_size


@pytest.mark.parametrize(
    ("name", "source", "message", "way_out"),
    [
        ("eqpsec", None, "unknown decoder 'eqpsec'", "did you mean 'eqspec'?"),
        ("bad.py:", "", "names no function", "module:function"),
        ("none.py:decode", None, "there is no file 'none.py'", "check the path"),
        (
            "no_such_module_at_all:decode",
            None,
            "there is no module 'no_such_module_at_all'",
            "path/to/file.py:function",
        ),
        ("bad.py:decod", GOOD, "has no function 'decod'", "did you mean 'decode'?"),
        ("bad.py:decode", "decode = 3\n", "is not a function", "write decode(target"),
        ("bad.py:decode", "def decode(target, draft):\n    pass\n", "lacks max_new_tokens", "write decode(target"),
        ("bad.py:decode", GOOD.replace("pad_token_id", "pad_token_id, beam"), "needs beam", "give it a default"),
        ("bad.py:decode", "def decode(:\n", "SyntaxError", "--debug"),
        ("bad.py:decode", "import no_such_package_here\n", "no_such_package_here", "--debug"),
        ("bad.py:decode", "1 / 0\n", "ZeroDivisionError", "--debug"),
    ],
)
def test_what_cannot_be_called_is_named(
    in_folder: Path, name: str, source: str | None, message: str, way_out: str
) -> None:
    if source is not None:
        (in_folder / "bad.py").write_text(source)
    with pytest.raises(DecoderError) as raised:
        resolve_decoder(name)
    assert message in raised.value.message
    assert way_out in (raised.value.way_out or "")
