"""Presentation of a run: reads records, prints, and never runs anything."""
