"""Causes: one file a group, from what was seen to why a case failed."""
