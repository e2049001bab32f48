"""All faults, by name, in the order of their groups."""

from __future__ import annotations

from specaudit.faults import acceptance, cache, masks, outputs, positions, stopping

FAULTS = {
    fault.name: fault for module in (positions, masks, cache, acceptance, stopping, outputs) for fault in module.FAULTS
}
"""Faults by name."""
