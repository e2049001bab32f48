"""What attention consumed: taps on a target model, and the record of every step.

Nothing here knows a decoder or its bookkeeping. A step is one forward of the target; a slot is one column of its cache; a
query is one token that a row feeds in a step.
"""
