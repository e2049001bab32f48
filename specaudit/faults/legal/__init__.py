"""Legal ways to decode: correct decoders that differ in layout, schedule or bookkeeping, one purpose a file.

Each has the documented signature and must give the target's own greedy output; a check that objects to one is wrong.
"""
