"""specaudit: a correctness auditor for speculative decoding."""

__version__ = "0.1.0"
