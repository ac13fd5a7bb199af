"""The Transformer: encoder, decoder, and the one matrix that serves both ends (§3).

Shapes: B batch, S source length, T target length, D model, V vocabulary, R rows (sentences × beams).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor, nn

from transduce.errors import InputError
from transduce.model.cache import DecoderState
from transduce.model.config import TransformerConfig
from transduce.model.decoder import Decoder
from transduce.model.embedding import Embedding, token_table
from transduce.model.encoder import Encoder
from transduce.model.ids import check_ids
from transduce.model.initialise import initialise
from transduce.model.masks import padding_mask
from transduce.model.writer import Writer

__all__ = ["AttentionRecord", "Transformer"]


@dataclass(frozen=True)
class AttentionRecord:
    """Attention weights of one forward pass: per layer a tensor [B, heads, queries, keys], rows summing to one."""

    encoder: list[Tensor] = field(default_factory=list)
    """Source tokens looking at source tokens, [B,H,S,S]."""
    decoder: list[Tensor] = field(default_factory=list)
    """Target tokens looking at target tokens up to themselves, [B,H,T,T]."""
    cross: list[Tensor] = field(default_factory=list)
    """Target tokens looking at source tokens, [B,H,T,S]."""


class Transformer(Writer):
    """Maps source ids and the target so far to logits of the next token.

    >>> model = Transformer(TransformerConfig.tiny(vocab_size=100))
    >>> logits = model(source_ids, target_ids)  # [B,S] and [B,T] to [B,T,V]

    `target_ids` is the decoder's input: it starts with `config.bos_id`, and position t gives the logits of token t+1.
    `config.pad_id` after the end marks padding. For search it is a stepper: `prefill`, `step`, `reorder`.
    """

    config: TransformerConfig

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        source_tokens = token_table(config.vocab_size, config.d_model)
        shared = config.tying in ("all", "embeddings")
        target_tokens = source_tokens if shared else token_table(config.output_size, config.d_model)
        self.source_embedding = Embedding(config, source_tokens)
        self.target_embedding = Embedding(config, target_tokens)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.projection = nn.Linear(config.d_model, config.output_size, bias=config.logits_bias)
        if config.ties_output:
            self.projection.weight = target_tokens.weight
        initialise(self, config)

    def forward(self, source_ids: Tensor, target_ids: Tensor) -> Tensor:
        """Logits [B,T,V] for source ids [B,S] and target ids [B,T]."""
        return self.project(self.hidden(source_ids, target_ids))

    def hidden(self, source_ids: Tensor, target_ids: Tensor, record: AttentionRecord | None = None) -> Tensor:
        """What `forward` projects to logits: the decoder's output [B,T,D]."""
        memory_BSD, mask = self.encode(source_ids, record)
        check_ids(target_ids, "target", self.config.output_size)
        if len(source_ids) != len(target_ids):
            raise InputError(
                f"{len(source_ids)} source sequences but {len(target_ids)} target sequences.",
                remedy="Give one target for each source.",
            )
        y_BTD: Tensor = self.decoder(
            self.target_embedding(target_ids),
            memory_BSD,
            mask,
            record.decoder if record else None,
            record.cross if record else None,
        )
        return y_BTD

    def encode(self, source_ids: Tensor, record: AttentionRecord | None = None) -> tuple[Tensor, Tensor | None]:
        """The encoder's output [B,S,D] and the mask [B,1,1,S] of real tokens, None if nothing is padded."""
        check_ids(source_ids, "source", self.config.vocab_size)
        mask = padding_mask(source_ids, self.config.pad_id)
        memory_BSD = self.encoder(self.source_embedding(source_ids), mask, record.encoder if record else None)
        return memory_BSD, mask

    def project(self, hidden: Tensor) -> Tensor:
        """Logits [..., V] of decoder outputs [..., D]: the pre-softmax linear transformation (§3.4)."""
        logits: Tensor = self.projection(hidden)
        return logits

    def with_attention(self, source_ids: Tensor, target_ids: Tensor) -> tuple[Tensor, AttentionRecord]:
        """Logits as `forward` gives them, and the attention weights of every layer and head."""
        record = AttentionRecord()
        return self.project(self.hidden(source_ids, target_ids, record)), record

    # The rest of the stepper protocol of transduce.decoding

    def prefill(self, source_ids: Tensor, capacity: int) -> DecoderState:
        """Encode the sources and start a state with one row each, for at most `capacity` target positions."""
        memory_BSD, mask = self.encode(source_ids)
        return self.decoder.prefill(memory_BSD, mask, capacity)

    def step(self, state: DecoderState, token_ids: Tensor) -> Tensor:
        """Logits [R,T,V] after each of the next T tokens [R,T] of every row."""
        x_RTD = self.target_embedding(token_ids, start=state.length)
        return self.project(self.decoder.step(x_RTD, state))

    def reorder(self, state: DecoderState, rows: Tensor) -> None:
        """Keep K beams for each of B sentences, `rows` [B,K] being rows of the present state."""
        state.reorder(rows)
