"""The self-test: faults, legal variants and random mutants, tried on a model, and what the auditor makes of them."""
