"""Checks: what must hold at every step and row, judged on a trace.

One file a check. A check looks at one fed token of a row's stream and returns a finding or None; `judgement` turns them
into the sync of a case.
"""
