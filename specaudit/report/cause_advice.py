"""What usually makes each cause, and where in a decoder to look for it."""

from __future__ import annotations

from specaudit.core.vocabulary import Cause

ADVICE = {
    Cause.POSITION_OFFSET: "Usually positions that count padding, or start from the width of the batch. "
    "Look at how position_ids are made for a row's first token.",
    Cause.POSITION_GAP: "Usually positions counted over rejected tokens or padding: from the cache's width instead of the "
    "row's own length. Look at what position_ids are after a round that rejected something.",
    Cause.POSITION_DUPLICATE: "Usually a counter that was not moved on by all tokens committed, or moved back too far. "
    "Look at what a row's length is after the bonus token and after a rejection.",
    Cause.POSITIONS_SHARED: "Usually no position_ids are passed: then the model fills in the same ones for all rows, "
    "counted from the cache's width. Look at the call of the target, and pass each row's own.",
    Cause.PAD_ATTENDED: "Usually the attention mask is left out, or made before rows were padded again. "
    "Look at where the mask gets its zeros when rows of different lengths are put together.",
    Cause.REJECTED_ATTENDED: "Usually the mask keeps ones where proposals were rejected. "
    "Look at how the mask is changed after a round, row by row.",
    Cause.LIVE_SLOT_MASKED: "Usually one rejected token too many is masked, or the mask of another row is used. "
    "Look at how many slots a round hides, and whether the bonus is counted.",
    Cause.STALE_KV: "Usually the cache is cropped to the wrong length: a rejected token's keys and values stay. "
    "Look at the length passed to crop, and whether it counts the pending token.",
    Cause.SHIFTED_KV: "Usually rows are cut, rolled or gathered by a wrong amount. "
    "Look at the indices with which the cache is realigned after rows accept different numbers of tokens.",
    Cause.FOREIGN_KV: "Usually rows are reordered or dropped in the batch and not in the cache, or the other way round. "
    "Look at where finished rows leave, and whether ids, mask, positions and cache take the same indices.",
    Cause.UNWRITTEN_KV: "Usually slots are zeroed, cast, copied in part or blended while the cache is realigned. "
    "Look at new tensors that are filled for it: every visible slot must be copied, in the cache's own type.",
    Cause.LAYER_MISMATCH: "Usually a loop that realigns the cache leaves out a layer, or moves keys and not values. "
    "Look at the loop over layers.",
    Cause.ACCEPTED_MISMATCH: "Usually acceptance compares proposals with predictions one place off, or takes the batch's "
    "number of accepted tokens for every row. Look at the slice of the logits that proposals are compared with.",
    Cause.BONUS_FROM_DRAFT: "Usually the token after the accepted ones is the first rejected proposal or the draft's next. "
    "Look at where the bonus is taken: from the target's logits at the last accepted token.",
    Cause.BONUS_WRONG: "Usually the bonus is read at a wrong query or row of the target's logits. "
    "Look at the index: the number of accepted proposals, for each row its own.",
    Cause.TOKEN_DROPPED: "Usually the bonus is fed and not written to the output, or a row is cut one too short. "
    "Look at what is appended to the output, and what is fed next.",
    Cause.TOKEN_REPEATED: "Usually the pending token is written again with the accepted ones. "
    "Look at whether a block's first token, which is in the output already, is appended with the rest.",
    Cause.UNVERIFIED_TOKEN: "Usually proposals are written to the output without a forward of the target behind them. "
    "Look at the last round, and at rows that leave early.",
    Cause.MISSED_EOS: "Usually EOS is looked for in the last token alone, and was accepted inside a block. "
    "Look at every token of the accepted block, in order.",
    Cause.EARLY_STOP: "Usually a neighbour's end, or a limit on cache or budget, ends the row as well. "
    "Look at the condition that ends the loop.",
    Cause.TAIL_AFTER_EOS: "Usually the accepted block is appended whole though EOS stands inside it. "
    "Look at where the output is cut.",
    Cause.PROMPT_EOS: "Usually EOS is looked for in prompt and output together. Search the generated tokens alone.",
    Cause.OVER_BUDGET: "Usually a round commits up to K + 1 tokens and the output is not cut to the budget. "
    "Look at the end of the loop.",
    Cause.PAD_LEAK: "Usually rows are cut from a padded rectangle by its width. Cut each by its own length.",
    Cause.PERMUTED: "Usually rows are sorted or refilled, and the outputs returned in that order. "
    "Look at how a row's output finds its prompt again.",
    Cause.ROUNDING_TIE: "Two logits lie within rounding of each other. Repeat in float32 or float64 to be sure.",
    Cause.UNEXPLAINED: "Nothing that was seen explains it. Repeat in float64, and with one prompt alone.",
}
"""One or two sentences for each cause."""
