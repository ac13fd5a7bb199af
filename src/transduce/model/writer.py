"""What all networks that write token by token say of their ids to whoever searches with them."""

from __future__ import annotations

from typing import Any

from torch import nn

__all__ = ["Writer"]


class Writer(nn.Module):
    """The part of the stepper protocol of transduce.decoding that a configuration answers."""

    config: Any
    """Has `bos_id`, `eos_id`, `pad_id` and `output_size`; of Transformers also their positions."""

    @property
    def bos_id(self) -> int:
        """The id that starts what is written."""
        return int(self.config.bos_id)

    @property
    def eos_id(self) -> int:
        """The id that ends it."""
        return int(self.config.eos_id)

    @property
    def pad_id(self) -> int:
        """The id that marks padding."""
        return int(self.config.pad_id)

    @property
    def output_size(self) -> int:
        """V, the number of ids that can be written."""
        return int(self.config.output_size)

    @property
    def max_target_length(self) -> int | None:
        """The longest output that the network has positions for; None where there is no limit."""
        learned = getattr(self.config, "positions", None) == "learned"  # a recurrent network has none to run out of
        return int(self.config.max_length) if learned else None
