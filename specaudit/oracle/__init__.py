"""The oracle: every emitted token scored by the target at its own prefix, and what rounding may excuse.

It knows a model, prompts and outputs: no decoder, no check, no report.
"""
