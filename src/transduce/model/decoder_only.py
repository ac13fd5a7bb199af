"""The decoder alone: a causal language model (GPT), on the layers of the encoder with the decoder's mask.

Shapes: B batch, T length, D model, V vocabulary, R rows (texts × beams).
"""

from __future__ import annotations

from torch import Tensor, nn

from transduce.model.cache import CausalState, KeyValueCache
from transduce.model.config import TransformerConfig
from transduce.model.decoder import causal_pattern
from transduce.model.embedding import Embedding, token_table
from transduce.model.ids import check_ids
from transduce.model.initialise import initialise
from transduce.model.layers import EncoderLayer, make_norm
from transduce.model.positions import AttentionPositions
from transduce.model.transformer import AttentionRecord
from transduce.model.writer import Writer

__all__ = ["LanguageModel"]


class LanguageModel(Writer):
    """Maps the text so far to logits of the next token; `config.decoder_layers` is its depth.

    >>> model = LanguageModel(TransformerConfig.tiny(vocab_size=100, norm_position="pre"))
    >>> logits = model(ids)  # [B,T] to [B,T,V]; a text starts with `config.bos_id`

    For search it is a stepper: what is to be continued is the prefix, and of a source only the number of rows counts.
    """

    config: TransformerConfig

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        tokens = token_table(config.vocab_size, config.d_model)
        self.embedding = Embedding(config, tokens)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.decoder_layers))
        self.norm = make_norm(config) if config.norm_position == "pre" else nn.Identity()
        self.positions = AttentionPositions(config, bidirectional=False)
        self.projection = nn.Linear(config.d_model, config.vocab_size, bias=config.logits_bias)
        if config.ties_output:
            self.projection.weight = tokens.weight
        initialise(self, config)

    def forward(self, ids: Tensor) -> Tensor:
        """Logits [B,T,V] of what follows each of the ids [B,T]."""
        return self.project(self.hidden(ids))

    def hidden(self, ids: Tensor, record: AttentionRecord | None = None, state: CausalState | None = None) -> Tensor:
        """What `forward` projects to logits, [B,T,D]; with a state, ids are the next T tokens after what it holds."""
        check_ids(ids, "text", self.config.vocab_size)
        start = 0 if state is None else state.length
        x_BTD: Tensor = self.embedding(ids, start)
        pattern = causal_pattern(self.positions, x_BTD, start)
        for number, layer in enumerate(self.layers):
            cache = None if state is None else state.layers[number]
            x_BTD = layer(x_BTD, pattern, None if record is None else record.decoder, cache)
        if state is not None:
            state.length += ids.size(1)
        y_BTD: Tensor = self.norm(x_BTD)
        return y_BTD

    def project(self, hidden: Tensor) -> Tensor:
        """Logits [..., V] of outputs [..., D]."""
        logits: Tensor = self.projection(hidden)
        return logits

    def with_attention(self, ids: Tensor) -> tuple[Tensor, AttentionRecord]:
        """Logits as `forward` gives them, and the attention weights of every layer and head as `decoder`."""
        record = AttentionRecord()
        return self.project(self.hidden(ids, record)), record

    # The rest of the stepper protocol of transduce.decoding

    def prefill(self, source_ids: Tensor, capacity: int) -> CausalState:
        """A state that holds nothing yet, for texts of at most `capacity` positions."""
        return CausalState([KeyValueCache(capacity) for _ in self.layers])

    def step(self, state: CausalState, token_ids: Tensor) -> Tensor:
        """Logits [R,T,V] after each of the next T tokens [R,T] of every row."""
        return self.project(self.hidden(token_ids, state=state))

    def reorder(self, state: CausalState, rows: Tensor) -> None:
        """Keep K beams for each of B texts, `rows` [B,K] being rows of the present state."""
        state.reorder(rows)
