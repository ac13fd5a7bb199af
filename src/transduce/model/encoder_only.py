"""The encoder alone (BERT): guesses masked tokens, names whole texts, or tags each token.

Shapes: B batch, S length, D model, V what the head tells apart: tokens or labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from transduce.errors import ConfigError, nearest
from transduce.model.config import TransformerConfig
from transduce.model.embedding import Embedding, token_table
from transduce.model.encoder import Encoder
from transduce.model.feedforward import ACTIVATIONS
from transduce.model.ids import check_ids
from transduce.model.initialise import initialise
from transduce.model.layers import make_norm
from transduce.model.masks import padding_mask
from transduce.model.transformer import AttentionRecord

__all__ = ["EncoderConfig", "EncoderOnly", "Head", "Pooling"]

Head = Literal["masked", "sentence", "token"]
Pooling = Literal["mean", "first"]


@dataclass(frozen=True, kw_only=True)
class EncoderConfig(TransformerConfig):
    """The shape of an encoder that stands alone; `decoder_layers` does not count."""

    head: Head = "masked"
    """What is told: the token at each place (for masked ones), a label for the text, or a label for each token."""
    labels: int | None = None
    """How many labels there are; not for masked tokens, which are those of the vocabulary."""
    pooling: Pooling = "mean"
    """What a text's label is told from: the mean of its tokens, or as BERT does its first one, through a layer."""
    head_transform: bool = False
    """Another layer and a normalisation before masked tokens are told, as BERT has."""

    @property
    def output_size(self) -> int:
        """The width of the logits."""
        return self.labels if self.labels is not None else self.vocab_size

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, choices in (("head", get_args(Head)), ("pooling", get_args(Pooling))):
            value = getattr(self, name)
            if value not in choices:
                raise ConfigError(f"{name}={value!r} is unknown.", remedy=nearest(str(value), choices))
        if (self.labels is None) != (self.head == "masked") or (self.labels is not None and self.labels < 1):
            raise ConfigError(
                f"head={self.head!r} and labels={self.labels} do not go together.",
                remedy="Labels are for the heads sentence and token, one or more.",
            )

    def _check_special_ids(self) -> None:
        if self.labels is None:  # labels are no vocabulary that special ids could lie in
            super()._check_special_ids()


class Transform(nn.Module):
    """Norm(act(xW + b)): what BERT does to an output before it becomes logits of tokens."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.d_model, config.d_model)
        self.activation, _ = ACTIVATIONS[config.activation]
        self.norm = make_norm(config)

    def forward(self, x: Tensor) -> Tensor:
        """Each position by itself: [..., D] to [..., D]."""
        y: Tensor = self.norm(self.activation(self.dense(x)))
        return y


class EncoderOnly(nn.Module):
    """Maps ids to logits: [B,S,V] for each token, or [B,1,V] for the text as a whole.

    >>> model = EncoderOnly(EncoderConfig.tiny(vocab_size=100, head="sentence", labels=3))
    >>> logits = model(ids)  # [B,S] to [B,1,3]
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        tokens = token_table(config.vocab_size, config.d_model)
        self.embedding = Embedding(config, tokens)
        self.encoder = Encoder(config)
        self.transform = Transform(config) if config.head == "masked" and config.head_transform else None
        first = config.head == "sentence" and config.pooling == "first"
        self.pooler = nn.Linear(config.d_model, config.d_model) if first else None
        self.projection = nn.Linear(config.d_model, config.output_size, bias=config.logits_bias)
        if config.head == "masked" and config.ties_output:
            self.projection.weight = tokens.weight
        initialise(self, config)

    def forward(self, ids: Tensor) -> Tensor:
        """Logits for ids [B,S], padded at the end with `config.pad_id`."""
        return self.project(self.hidden(ids))

    def hidden(self, ids: Tensor, record: AttentionRecord | None = None) -> Tensor:
        """What `forward` projects: a vector for each token [B,S,D], or one for the text [B,1,D]."""
        check_ids(ids, "text", self.config.vocab_size)
        mask = padding_mask(ids, self.config.pad_id)
        y_BSD: Tensor = self.encoder(self.embedding(ids), mask, None if record is None else record.encoder)
        if self.transform is not None:
            y_BSD = self.transform(y_BSD)
        if self.config.head != "sentence":
            return y_BSD
        if self.pooler is not None:
            return torch.tanh(self.pooler(y_BSD[:, :1]))
        real_BS1 = (ids != self.config.pad_id).unsqueeze(-1)
        return (y_BSD * real_BS1).sum(1, keepdim=True) / real_BS1.sum(1, keepdim=True)

    def project(self, hidden: Tensor) -> Tensor:
        """Logits [..., V] of outputs [..., D]."""
        logits: Tensor = self.projection(hidden)
        return logits

    def with_attention(self, ids: Tensor) -> tuple[Tensor, AttentionRecord]:
        """Logits as `forward` gives them, and the attention weights of every layer and head as `encoder`."""
        record = AttentionRecord()
        return self.project(self.hidden(ids, record)), record
