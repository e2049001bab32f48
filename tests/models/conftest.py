"""One thread a process: the tests run side by side, and tiny models gain nothing from more."""

from __future__ import annotations

import torch

torch.set_num_threads(1)
