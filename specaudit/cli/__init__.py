"""The command line: commands import what they need inside functions, so that help answers at once."""
