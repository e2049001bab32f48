"""Decoders: one file each, and the registry that names them.

A decoder is a function::

    def decode(target, draft, tokenizer, prompts: list[list[int]], *, max_new_tokens: int, draft_tokens: int,
               eos_token_ids: set[int], pad_token_id: int) -> list[list[int]]

It returns the generated ids only, one list a prompt, in order, each including the EOS that ended it and nothing after.
"""
