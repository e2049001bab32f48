"""Watching a model in anybody's own script: the certificate of a run, without a run."""
