"""Outputs that other engines produced: what was recorded, paired and compared without a model."""
