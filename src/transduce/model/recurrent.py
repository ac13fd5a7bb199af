"""What the Transformer replaced: two recurrent networks joined by additive attention (Bahdanau et al., 2015).

A bidirectional encoder reads the source to states h₁ … h_S. The decoder writes token i from its state sᵢ:

    eᵢⱼ = vᵀ tanh(W sᵢ₋₁ + U hⱼ),   αᵢ = softmax(eᵢ),   cᵢ = Σⱼ αᵢⱼ hⱼ,   sᵢ = cell(sᵢ₋₁, [yᵢ₋₁; cᵢ])

Each step needs the one before: T steps in a row where the Transformer takes one (Table 1).

Shapes: B batch, S source length, T target length, D model, H hidden, A attention, G gates (3·H of a GRU, 4·H of an
LSTM), R rows (B sentences × K beams), V vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from transduce.errors import ConfigError, InputError, nearest
from transduce.model.config import Tying
from transduce.model.dropout import Dropout
from transduce.model.embedding import token_table
from transduce.model.ids import check_ids
from transduce.model.transformer import AttentionRecord
from transduce.model.writer import Writer

__all__ = ["RecurrentConfig", "RecurrentState", "RecurrentTranslator", "additive_weights"]

Cell = Literal["gru", "lstm"]
SIZES = ("vocab_size", "target_vocab_size", "d_model", "hidden", "attention_width", "encoder_layers", "decoder_layers")
CHOICES = {"cell": get_args(Cell), "tying": get_args(Tying)}


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig:
    """What a recurrent translator looks like."""

    vocab_size: int
    """Number of token ids; of the source alone when `target_vocab_size` is set."""
    target_vocab_size: int | None = None
    """Number of target ids where source and target do not share a vocabulary."""
    d_model: int = 256
    """Width of embeddings, and of what becomes logits."""
    hidden: int = 256
    """Width of a state; the encoder has one for each direction."""
    attention_width: int = 256
    """Width of W s and U h, where they meet."""
    cell: Cell = "gru"
    """Of encoder and decoder."""
    encoder_layers: int = 1
    """Each reads both ways."""
    decoder_layers: int = 1
    """The first has the attention; the others read its states."""
    dropout: float = 0.1
    """On embeddings, between layers and before the output."""
    tying: Tying = "all"
    """One matrix for both embeddings and the output (`all`), target and output only, or none."""
    pad_id: int = 0
    """Marks padding; may stand only at the end of a sequence."""
    bos_id: int = 1
    """Starts the decoder's input."""
    eos_id: int = 2
    """Ends a sentence."""

    @classmethod
    def base(cls, vocab_size: int, **overrides: Any) -> RecurrentConfig:
        """The defaults with some fields changed; a name that is no field is named, with the nearest one."""
        known = {field.name for field in fields(cls)}
        for name in overrides.keys() - known:
            raise ConfigError(f"{name!r} is not a setting of the recurrent network.", remedy=nearest(name, known))
        return cls(vocab_size=vocab_size, **overrides)

    def __post_init__(self) -> None:
        for name in SIZES:
            value = getattr(self, name)
            if (not isinstance(value, int) or value < 1) and (value is not None or name != "target_vocab_size"):
                raise ConfigError(f"{name}={value!r} cannot work.", remedy="It must be a whole number, 1 or more.")
        for name, choices in CHOICES.items():
            if (value := getattr(self, name)) not in choices:
                raise ConfigError(f"{name}={value!r} is unknown.", remedy=nearest(str(value), choices))
        if not isinstance(self.dropout, int | float) or not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout={self.dropout!r} is not a probability below 1.", remedy="Use 0 to below 1.")
        if self.target_vocab_size is not None and self.tying == "all":
            raise ConfigError(
                "tying='all' is one table for both sides, target_vocab_size sets their vocabularies apart.",
                remedy="Use tying='target', or leave target_vocab_size unset.",
            )
        ids, size = (self.pad_id, self.bos_id, self.eos_id), min(self.vocab_size, self.output_size)
        if not all(isinstance(each, int) and 0 <= each < size for each in ids) or self.eos_id in ids[:2]:
            raise ConfigError(
                f"pad_id={self.pad_id!r}, bos_id={self.bos_id!r} and eos_id={self.eos_id!r} cannot work.",
                remedy=f"Use ids from 0 to {size - 1}, and for the end of a sentence one of its own.",
            )

    @property
    def output_size(self) -> int:
        """V, the number of ids that can be written."""
        return self.vocab_size if self.target_vocab_size is None else self.target_vocab_size


def additive_weights(query_BKA: Tensor, keys_BSA: Tensor, v_A: Tensor, bias_B1S: Tensor | None = None) -> Tensor:
    """softmaxⱼ(vᵀ tanh(W sᵢ₋₁ + U hⱼ)), [B,K,S], for queries W s and keys U h; `bias_B1S` is −∞ on padding."""
    scores_BKS = torch.tanh(query_BKA.unsqueeze(2) + keys_BSA.unsqueeze(1)) @ v_A
    return (scores_BKS if bias_B1S is None else scores_BKS + bias_B1S).softmax(-1)


@dataclass
class RecurrentState:
    """What is remembered of a batch that is being decoded: memory once per sentence, states once per row."""

    memory: Tensor
    """h, [B,S,M]: both directions, M = 2·H."""
    keys: Tensor
    """U h, [B,S,A]."""
    values: Tensor
    """What each h would bring to the cell's gates if all attention were on it, [B,S,G]."""
    bias: Tensor | None
    """−∞ on padding, [B,1,S]; None where nothing is padded."""
    layers: list[tuple[Tensor, ...]]
    """Of each decoder layer, [R,H]: the state, and an LSTM's memory cell."""


class RecurrentTranslator(Writer):
    """Maps source ids and the target so far to logits of the next token, as `Transformer` does and with its surface."""

    config: RecurrentConfig

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.config = config
        width, hidden, attention = config.d_model, config.hidden, config.attention_width
        network, gates = (nn.GRU, 3 * hidden) if config.cell == "gru" else (nn.LSTM, 4 * hidden)
        source_tokens = token_table(config.vocab_size, width)
        target_tokens = source_tokens if config.tying == "all" else token_table(config.output_size, width)
        self.source_tokens, self.target_tokens = source_tokens, target_tokens
        widths = [width, *[2 * hidden] * (config.encoder_layers - 1)]
        self.encoder = nn.ModuleList(network(each, hidden, batch_first=True, bidirectional=True) for each in widths)
        self.start = nn.Linear(hidden, config.decoder_layers * hidden)
        self.keys = nn.Linear(2 * hidden, attention)
        self.score = nn.Parameter(torch.randn(attention) * attention**-0.5)
        self.inputs = nn.Linear(width, gates)
        self.values = nn.Linear(2 * hidden, gates, bias=False)
        self.recurrence = nn.Linear(hidden, attention + gates)  # W and the cell's own, in one product
        self.upper = nn.ModuleList(network(hidden, hidden, batch_first=True) for _ in range(config.decoder_layers - 1))
        self.readout = nn.Linear(width + 3 * hidden, 2 * width)
        self.dropout = Dropout(config.dropout)
        self.projection = nn.Linear(width, config.output_size, bias=False)
        if config.tying != "none":
            self.projection.weight = target_tokens.weight
        for table in dict.fromkeys((source_tokens.weight, target_tokens.weight, self.projection.weight)):
            nn.init.normal_(table, std=width**-0.5)

    def forward(self, source_ids: Tensor, target_ids: Tensor) -> Tensor:
        """Logits [B,T,V] for source ids [B,S] and target ids [B,T]."""
        return self.project(self.hidden(source_ids, target_ids))

    def hidden(self, source_ids: Tensor, target_ids: Tensor, record: AttentionRecord | None = None) -> Tensor:
        """What `forward` projects to logits, [B,T,D]."""
        state = self.prefill(source_ids)
        check_ids(target_ids, "target", self.config.output_size)
        if len(source_ids) != len(target_ids):
            raise InputError(
                f"{len(source_ids)} source sequences but {len(target_ids)} target sequences.",
                remedy="Give one target for each source.",
            )
        return self._write(state, target_ids, record)

    def project(self, hidden: Tensor) -> Tensor:
        """Logits [..., V] of what `hidden` gives, [..., D]."""
        logits: Tensor = self.projection(hidden)
        return logits

    def with_attention(self, source_ids: Tensor, target_ids: Tensor) -> tuple[Tensor, AttentionRecord]:
        """Logits as `forward` gives them, and the attention weights: one layer, one head, in `cross`."""
        record = AttentionRecord()
        return self.project(self.hidden(source_ids, target_ids, record)), record

    def _embedded(self, tokens: nn.Embedding, ids: Tensor) -> Tensor:
        x: Tensor = self.dropout(tokens(ids) * math.sqrt(self.config.d_model))
        return x

    def _write(self, state: RecurrentState, target_ids: Tensor, record: AttentionRecord | None = None) -> Tensor:
        """Move the state on by the T tokens of each row; what they give, [R,T,D]."""
        x_RTD = self._embedded(self.target_tokens, target_ids)
        (rows, length), sentences = target_ids.shape, len(state.memory)
        states, weights = [], []
        for x_RG in self.inputs(x_RTD.transpose(0, 1)).unbind(0):
            query_RA, own_RG = self.recurrence(state.layers[0][0]).split([len(self.score), x_RG.size(1)], -1)
            query_BKA = query_RA.reshape(sentences, -1, len(self.score))
            weights_BKS = additive_weights(query_BKA, state.keys, self.score, state.bias)
            # As much as W c, at a fraction of its cost: W h is there once for all steps.
            context_RG = (weights_BKS @ state.values).view(rows, -1)
            state.layers[0] = _next(x_RG + context_RG, own_RG, state.layers[0])
            states.append(state.layers[0][0])
            weights.append(weights_BKS)
        weights_BNS = torch.stack(weights, 2).view(sentences, -1, state.keys.size(1))
        context_RTM = (weights_BNS @ state.memory).view(rows, length, -1)
        s_RTH = torch.stack(states, 1)
        for number, network in enumerate(self.upper, start=1):
            before = [part.unsqueeze(0) for part in state.layers[number]]
            s_RTH, after = network(self.dropout(s_RTH), before[0] if len(before) == 1 else tuple(before))
            state.layers[number] = tuple(part[0] for part in (after if isinstance(after, tuple) else (after,)))
        if record is not None:
            record.cross.append(weights_BNS.view(rows, 1, length, -1))
        both = self.readout(torch.cat((x_RTD, self.dropout(s_RTH), self.dropout(context_RTM)), -1))
        hidden_RTD: Tensor = self.dropout(torch.maximum(*both.chunk(2, -1)))  # maxout, as published
        return hidden_RTD

    # The rest of the stepper protocol of transduce.decoding

    def prefill(self, source_ids: Tensor, capacity: int = 0) -> RecurrentState:
        """Read the sources; one row each. States do not grow, so `capacity` is for the protocol alone."""
        check_ids(source_ids, "source", self.config.vocab_size)
        real_BS = source_ids != self.config.pad_id
        lengths = real_BS.sum(1).clamp(min=1).cpu()
        x = self._embedded(self.source_tokens, source_ids)
        for network in self.encoder:
            packed, _ = network(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
            x = self.dropout(pad_packed_sequence(packed, batch_first=True, total_length=source_ids.size(1))[0])
        bias = None
        if not bool(real_BS.all()):  # −∞ as the lowest finite number, so that no row gives NaN
            bias = torch.zeros_like(real_BS, dtype=x.dtype).masked_fill(~real_BS, torch.finfo(x.dtype).min).unsqueeze(1)
        # The backward direction has read the whole sentence when it is at the first token.
        first = torch.tanh(self.start(x[:, 0, self.config.hidden :])).chunk(self.config.decoder_layers, -1)
        layers: list[tuple[Tensor, ...]] = [
            (s,) if self.config.cell == "gru" else (s, torch.zeros_like(s)) for s in first
        ]
        return RecurrentState(x, self.keys(x), self.values(x), bias, layers)

    def step(self, state: RecurrentState, token_ids: Tensor) -> Tensor:
        """Logits [R,T,V] after each of the next T tokens [R,T] of every row."""
        return self.project(self._write(state, token_ids))

    def reorder(self, state: RecurrentState, rows: Tensor) -> None:
        """Keep K beams for each of B sentences, `rows` [B,K] being rows of the present state."""
        sentences = len(state.memory)
        stay_B = rows[:, 0] // (len(state.layers[0][0]) // sentences)
        if len(stay_B) < sentences:
            state.memory, state.keys, state.values = state.memory[stay_B], state.keys[stay_B], state.values[stay_B]
            state.bias = None if state.bias is None else state.bias[stay_B]
        state.layers = [tuple(part[rows.flatten()] for part in layer) for layer in state.layers]


def _next(x_RG: Tensor, own_RG: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """A cell's next state from what its input and its own state bring to the gates; gates in PyTorch's order."""
    if len(state) == 1:
        width = state[0].size(1)
        reset, update = torch.sigmoid(x_RG[:, : 2 * width] + own_RG[:, : 2 * width]).chunk(2, 1)
        new = torch.tanh(torch.addcmul(x_RG[:, 2 * width :], reset, own_RG[:, 2 * width :]))
        return (torch.lerp(new, state[0], update),)
    enter, forget, new, leave = (x_RG + own_RG).chunk(4, 1)
    cell = torch.sigmoid(forget) * state[1] + torch.sigmoid(enter) * torch.tanh(new)
    return torch.sigmoid(leave) * torch.tanh(cell), cell
