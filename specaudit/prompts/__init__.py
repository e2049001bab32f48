"""Prompt sets: the bundled one, text files, JSON Lines and SpecBench. Standard library only."""

from __future__ import annotations

from specaudit.prompts.loading import load_prompts
from specaudit.prompts.prompt_set import PromptSet

__all__ = ["PromptSet", "load_prompts"]
