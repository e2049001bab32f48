"""What `--target` and `--draft` can say, and what is answered to what they cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from specaudit.core.errors import ModelError, UsageError
from specaudit.models.bundled import bundled_families
from specaudit.models.drafts import LayersDraft, NoisyDraft, StressDraft, parse_draft
from specaudit.models.options import LoadOptions
from specaudit.models.source import ModelSource, parse_source


def test_a_bundled_family_gives_the_model_of_the_role() -> None:
    target = parse_source("bundled:llama", role="target")
    draft = parse_source("bundled:llama", role="draft")
    assert (target.kind, draft.kind) == ("bundled", "bundled")
    assert Path(target.location).parts[-2:] == ("llama", "target")
    assert Path(draft.location).parts[-2:] == ("llama", "draft")
    assert "llama" in bundled_families()


@pytest.mark.parametrize("given", ["bundled:lama", "bundled:", "bundled:../prompts"])
def test_an_unknown_family_names_the_known_ones(given: str) -> None:
    with pytest.raises(ModelError) as caught:
        parse_source(given, role="target")
    assert "llama" in (caught.value.way_out or "")


def test_paths_that_exist_are_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "org" / "name").mkdir(parents=True)
    (tmp_path / "m.GGUF").touch()
    assert parse_source("org/name", role="target") == ModelSource(
        given="org/name", kind="directory", location="org/name"
    )
    assert parse_source("m.GGUF", role="draft").kind == "gguf"
    assert parse_source(str(tmp_path), role="target").kind == "directory"


@pytest.mark.parametrize("given", ["gpt2", "org/name", "Org.x/na_me-1.5"])
def test_other_names_are_of_the_hub(given: str) -> None:
    source = parse_source(given, role="target", revision="v1")
    assert (source.kind, source.location, source.revision) == ("hub", given, "v1")


@pytest.mark.parametrize("given", ["./missing", "../missing", "/missing/x", "~/missing", "missing.gguf", "org/name/"])
def test_a_path_that_does_not_exist_is_not_taken_for_the_hub(given: str) -> None:
    with pytest.raises(ModelError, match="no such model directory or file"):
        parse_source(given, role="target")


@pytest.mark.parametrize("given", ["", "a/b/c", "bundle:llama", "layer:2", "name with spaces", "https://x/y"])
def test_what_can_be_nothing_is_refused(given: str) -> None:
    with pytest.raises(ModelError, match="names no model") as caught:
        parse_source(given, role="target")
    assert "bundled:FAMILY" in (caught.value.way_out or "")
    with pytest.raises(ModelError) as caught:
        parse_draft(given, options=LoadOptions())
    assert "layers:N" in (caught.value.way_out or "")


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    weights.touch()
    with pytest.raises(ModelError, match=r"not a \.gguf file") as caught:
        parse_source(str(weights), role="target")
    assert str(tmp_path) in (caught.value.way_out or "")


@pytest.mark.parametrize("given", ["bundled:llama", "."])
def test_a_revision_needs_the_hub(given: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_source(given, role="draft", revision="main")
    assert caught.value.where == "--draft-revision"


def test_derived_drafts_are_read() -> None:
    options = LoadOptions(seed=7)
    assert parse_draft("layers:2", options=options) == LayersDraft(layers=2)
    assert parse_draft("noisy:0.12", options=options) == NoisyDraft(scale=0.12, seed=7)
    assert parse_draft("noisy:0", options=options) == NoisyDraft(scale=0.0, seed=7)
    assert parse_draft("stress:1", options=options) == StressDraft(rate=1.0, seed=7)


@pytest.mark.parametrize(
    "given",
    ["layers:0", "layers:-1", "layers:", "layers:1.5", "layers:two", "noisy:-0.1", "noisy:nan", "noisy:inf", "noisy:",
     "stress:1.01", "stress:-0.5", "stress:half", "stress:nan"],
)  # fmt: skip
def test_numbers_out_of_range_are_refused(given: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_draft(given, options=LoadOptions())
    assert caught.value.where == f"--draft {given}"
    assert given.partition(":")[0] in (caught.value.way_out or "")


def test_a_derived_draft_has_no_revision() -> None:
    with pytest.raises(UsageError):
        parse_draft("layers:2", options=LoadOptions(draft_revision="main"))


def test_an_unknown_dtype_names_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        LoadOptions(dtype="float23")
    assert caught.value.way_out == "did you mean 'float32'?"
