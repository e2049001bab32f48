"""Prompt sets: the bundled ones, text, JSON, tables, SpecBench and standard input. Standard library only."""

from __future__ import annotations

from specaudit.prompts.loading import load_prompts
from specaudit.prompts.prompt_set import PromptSet

__all__ = ["PromptSet", "load_prompts"]
