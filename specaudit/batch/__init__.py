"""Ragged batches: rows of different lengths in one rectangle, and the cache that belongs to them.

This package is the one place that knows transformers' cache classes and the names of a forward's arguments.
"""
