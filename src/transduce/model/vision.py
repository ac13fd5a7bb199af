"""The encoder on pictures (ViT): patches as tokens, and a class token that collects what the picture shows.

Shapes: B batch, C channels, N patches, P numbers in a patch, D model, V labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.errors import ConfigError, InputError
from transduce.model.config import TransformerConfig
from transduce.model.dropout import Dropout
from transduce.model.encoder import Encoder
from transduce.model.initialise import initialise
from transduce.model.positions import make_added_positions
from transduce.model.transformer import AttentionRecord

__all__ = ["VisionConfig", "VisionTransformer"]


@dataclass(frozen=True, kw_only=True)
class VisionConfig(TransformerConfig):
    """The shape of an encoder of pictures; vocabulary and `decoder_layers` do not count."""

    vocab_size: int = 3  # pictures have no vocabulary; special ids need a place
    labels: int = 10
    """What pictures are told apart as."""
    height: int = 28
    """Of a picture, in pixels."""
    width: int = 28
    """Of a picture, in pixels."""
    channels: int = 1
    """1 for grey, 3 for colours."""
    patch: int = 7
    """Pixels of a patch's side."""

    @property
    def output_size(self) -> int:
        """The width of the logits."""
        return self.labels

    @property
    def grid(self) -> tuple[int, int]:
        """Patches down and across."""
        return self.height // self.patch, self.width // self.patch

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("labels", "height", "width", "channels", "patch"):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 1:
                raise ConfigError(f"{name}={getattr(self, name)!r} cannot work.", remedy="It must be 1 or more.")
        if self.height % self.patch or self.width % self.patch:
            fits = [each for each in range(1, self.patch + 1) if self.height % each == 0 == self.width % each]
            raise ConfigError(
                f"pictures of {self.height}×{self.width} cannot be cut into patches of {self.patch}×{self.patch}.",
                remedy=f"Use patch={fits[-1]}.",
            )
        if self.positions == "learned" and self.max_length < self.grid[0] * self.grid[1] + 1:
            raise ConfigError(
                f"max_length={self.max_length} is less than the patches and the class token.",
                remedy=f"Use max_length={self.grid[0] * self.grid[1] + 1}.",
            )

    def _check_special_ids(self) -> None:
        """There are none."""


class VisionTransformer(nn.Module):
    """Maps pictures [B,C,height,width] with values around 0 to logits [B,1,V]."""

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.config = config
        self.patches = nn.Linear(config.channels * config.patch**2, config.d_model, bias=False)
        self.class_token = nn.Parameter(torch.zeros(1, 1, config.d_model))
        self.positions = make_added_positions(config)
        self.dropout = Dropout(config.dropout)
        self.encoder = Encoder(config)
        self.projection = nn.Linear(config.d_model, config.labels, bias=config.logits_bias)
        initialise(self, config)

    def forward(self, pictures: Tensor) -> Tensor:
        """Logits [B,1,V] for pictures [B,C,height,width]."""
        return self.project(self.hidden(pictures))

    def hidden(self, pictures: Tensor, record: AttentionRecord | None = None) -> Tensor:
        """What `forward` projects: the class token's output [B,1,D]."""
        config = self.config
        expected = (config.channels, config.height, config.width)
        if pictures.dim() != 4 or tuple(pictures.shape[1:]) != expected:
            raise InputError(
                f"pictures have shape {list(pictures.shape)}.",
                remedy=f"Give a batch [pictures, {', '.join(map(str, expected))}].",
            )
        patches_BNP = F.unfold(pictures, config.patch, stride=config.patch).transpose(1, 2)
        x_BND = torch.cat((self.class_token.expand(len(pictures), -1, -1), self.patches(patches_BNP)), dim=1)
        if self.positions is not None:
            x_BND = self.positions(x_BND)
        y_BND: Tensor = self.encoder(self.dropout(x_BND), None, None if record is None else record.encoder)
        return y_BND[:, :1]

    def project(self, hidden: Tensor) -> Tensor:
        """Logits [..., V] of outputs [..., D]."""
        logits: Tensor = self.projection(hidden)
        return logits

    def with_attention(self, pictures: Tensor) -> tuple[Tensor, AttentionRecord]:
        """Logits as `forward` gives them, and the attention weights of every layer and head as `encoder`.

        The class token comes first, then the patches row by row.
        """
        record = AttentionRecord()
        return self.project(self.hidden(pictures, record)), record
