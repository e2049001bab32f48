"""Faults: a correct batched speculative decoder of our own, and what can be broken in it, one thing at a time."""
