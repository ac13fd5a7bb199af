"""What a step of training costs: parameters, operations and memory, by arithmetic alone.

A network is a list of matrices and of what passes through each. From that follow its parameters, its operations
(a weight is multiplied and added once for each token, and twice more on the way back) and what must be kept for the
way back. Nothing is built and PyTorch is not imported; tests hold the sums to real networks.

Letters: D model, F feed-forward, H heads, G key-value heads, V vocabulary, P parameters.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from transduce.errors import ConfigError

if TYPE_CHECKING:
    from transduce.model.config import TransformerConfig
    from transduce.model.encoder_only import EncoderConfig
    from transduce.model.family import Config, Network
    from transduce.model.vision import VisionConfig

__all__ = ["FILL", "Anatomy", "Load", "Matrix", "anatomy", "kept_numbers", "optimizer_numbers", "step_flops"]

FILL = 0.9
"""Share of a batch that is no padding (measured on Tatoeba: 0.89)."""
NEWTON_ROUNDS = 5
"""Of Muon's orthogonal steps."""

Side = Literal["source", "target", "asked"]
"""What passes through a matrix: the tokens that are read, those that are written, those whose logits are wanted.

Networks of one text (or picture) read all of theirs as source."""


class Matrix(NamedTuple):
    """A linear map."""

    outputs: int
    inputs: int
    over: Side
    layered: bool = True
    """Whether it stands in a stack of layers: these are what Muon learns by orthogonal steps."""

    @property
    def weights(self) -> int:
        """How many numbers it has."""
        return self.outputs * self.inputs


@dataclass(frozen=True)
class Anatomy:
    """What a network consists of."""

    matrices: list[Matrix]
    """In the order in which they are met; the one that gives logits last."""
    tables: int = 0
    """Numbers that are looked up: embeddings, learned positions."""
    vectors: int = 0
    """Biases, normalisations and the like."""
    ties_output: bool = False
    """Whether the last matrix is one of the tables."""

    @property
    def parameters(self) -> int:
        """P, tied ones once."""
        own = self.matrices[:-1] if self.ties_output else self.matrices
        return sum(matrix.weights for matrix in own) + self.tables + self.vectors

    @property
    def output(self) -> Matrix:
        """What gives the logits."""
        return self.matrices[-1]

    @property
    def layered(self) -> list[Matrix]:
        """The matrices of the layers."""
        return [matrix for matrix in self.matrices if matrix.layered]


@dataclass(frozen=True)
class Load:
    """A batch, or a part of one: so many rows of so many tokens, padding included."""

    rows: float
    source: float
    """Tokens of a row that are read, marks included."""
    target: float = 0.0
    """Tokens of a row that are written."""
    asked: float = 0.0
    """Tokens of all rows whose logits are wanted: real ones."""

    def tokens(self, side: Side) -> float:
        """All that pass through a matrix."""
        return {"source": self.rows * self.source, "target": self.rows * self.target, "asked": self.asked}[side]

    @property
    def read_and_written(self) -> float:
        """Tokens of both sides, padding included."""
        return self.rows * (self.source + self.target)

    def part(self, parts: float) -> Load:
        """One of so many parts of equal size."""
        return Load(self.rows / parts, self.source, self.target, self.asked / parts)


def anatomy(network: Network, config: Config) -> Anatomy:
    """What a network of this family and shape consists of."""
    if network == "recurrent":
        raise ConfigError(
            "the costs of recurrent networks are not planned.",
            remedy="Plan a Transformer (network=transformer), or train for a minute and look.",
        )
    if network == "vision":
        return _vision(config)  # type: ignore[arg-type]
    if network == "encoder-only":
        return _encoder_only(config)  # type: ignore[arg-type]
    return (_decoder_only if network == "decoder-only" else _transformer)(config)  # type: ignore[arg-type]


def step_flops(
    parts: Anatomy,
    network: Network,
    config: TransformerConfig,
    load: Load,
    r_drop: bool = False,
    muon: bool = False,
    compared: float | None = None,
) -> float:
    """Operations of a step: multiplications and additions of all matrix products, forward and back.

    `compared` is how many outputs a token is compared with, where that is not all of them.
    """
    inner = [matrix for matrix in parts.matrices if matrix is not parts.output]
    products = sum(6 * matrix.weights * load.tokens(matrix.over) for matrix in inner)
    outputs = parts.output.outputs if compared is None else compared
    logits = 6 * outputs * parts.output.inputs * load.tokens("asked")
    steps = sum(_orthogonal_flops(matrix) for matrix in parts.layered) if muon else 0.0
    return (products + logits + _attention_flops(network, config, load)) * (2 if r_drop else 1) + steps


def optimizer_numbers(parts: Anatomy, muon: bool) -> int:
    """What the optimiser remembers: two numbers a parameter (Adam), one for those of Muon's."""
    return 2 * parts.parameters - (sum(matrix.weights for matrix in parts.layered) if muon else 0)


@dataclass(frozen=True)
class Kept:
    """Numbers that are kept from the way forward for the way back, by what becomes of them on other devices."""

    operands: float = 0.0
    """Inputs of matrix products: half as wide where training computes in bfloat16."""
    residuals: float = 0.0
    """Inputs of normalisations: always float32."""
    dropped: float = 0.0
    """What dropout has let through: a float32 on a CPU, a byte on a GPU."""
    scores: float = 0.0
    """Attention weights: none where attention is fused."""

    def __add__(self, other: Kept) -> Kept:
        return Kept(
            self.operands + other.operands,
            self.residuals + other.residuals,
            self.dropped + other.dropped,
            self.scores + other.scores,
        )

    def __mul__(self, times: float) -> Kept:
        return Kept(self.operands * times, self.residuals * times, self.dropped * times, self.scores * times)


def kept_numbers(network: Network, config: TransformerConfig, load: Load) -> Kept:
    """What a batch leaves behind on its way through the layers."""
    source, target = load.tokens("source"), load.tokens("target")
    embedded = Kept(dropped=config.d_model * bool(config.dropout))
    attend = _attention_kept(config, load.source)
    layers = config.decoder_layers if network == "decoder-only" else config.encoder_layers
    kept = (attend + _feedforward_kept(config)) * (layers * source) + embedded * source
    if network == "transformer":
        side = config.decoder_side
        looks_back = _attention_kept(side, load.source, crosses=True)
        layer = _attention_kept(side, load.target) + looks_back + _feedforward_kept(side)
        memory = Kept(operands=side.heads * (side.key_width + side.value_width))
        kept += layer * (side.decoder_layers * target) + memory * (side.decoder_layers * source) + embedded * target
    return kept


# The parts of the networks


@dataclass
class _Parts:
    """Collects what a network consists of."""

    matrices: list[Matrix] = field(default_factory=list)
    tables: int = 0
    vectors: int = 0

    def attention(self, config: TransformerConfig, over: Side, memory: Side) -> None:
        queries, keys = config.heads * config.key_width, config.key_value_groups * config.key_width
        values, width = config.key_value_groups * config.value_width, config.d_model
        self.matrices += [Matrix(queries, width, over), Matrix(keys, width, memory), Matrix(values, width, memory)]
        self.matrices.append(Matrix(width, config.heads * config.value_width, over))
        self.vectors += (queries + keys + values + width) * config.attention_bias + _norm(config)

    def feedforward(self, config: TransformerConfig, over: Side) -> None:
        inner = 2 if _is_gated(config) else 1
        self.matrices += [Matrix(config.d_ff, config.d_model, over)] * inner + [
            Matrix(config.d_model, config.d_ff, over)
        ]
        self.vectors += (inner * config.d_ff + config.d_model) * config.feedforward_bias + _norm(config)

    def stack(self, config: TransformerConfig, layers: int, over: Side = "source", crosses: bool = False) -> None:
        for _ in range(layers):
            self.attention(config, over, over)
            if crosses:
                self.attention(config, over, "source")
            self.feedforward(config, over)
        self.vectors += _norm(config) * (config.norm_position == "pre")
        self.vectors += config.relative_buckets * config.heads * (config.positions == "relative")

    def embedding(self, config: TransformerConfig, normalised: bool = True) -> None:
        self.tables += config.max_length * config.d_model * (config.positions == "learned")
        self.vectors += _norm(config) * (config.embedding_norm and normalised)

    def finished(self, config: TransformerConfig, outputs: int, ties_output: bool) -> Anatomy:
        self.vectors += outputs * config.logits_bias
        output = Matrix(outputs, config.d_model, "asked", layered=False)
        return Anatomy([*self.matrices, output], self.tables, self.vectors, ties_output)


def _transformer(config: TransformerConfig) -> Anatomy:
    parts, apart = _Parts(), config.tying not in ("all", "embeddings")
    parts.tables += (config.vocab_size + config.output_size * apart) * config.d_model
    for _ in ("source", "target"):
        parts.embedding(config)
    parts.stack(config, config.encoder_layers)
    parts.stack(config.decoder_side, config.decoder_layers, over="target", crosses=True)
    return parts.finished(config, config.output_size, config.ties_output)


def _decoder_only(config: TransformerConfig) -> Anatomy:
    parts = _Parts(tables=config.vocab_size * config.d_model)
    parts.embedding(config)
    parts.stack(config, config.decoder_layers)
    return parts.finished(config, config.vocab_size, config.ties_output)


def _encoder_only(config: EncoderConfig) -> Anatomy:
    parts, width = _Parts(tables=config.vocab_size * config.d_model), config.d_model
    parts.embedding(config)
    parts.stack(config, config.encoder_layers)
    if config.head == "masked" and config.head_transform:
        parts.matrices.append(Matrix(width, width, "source", layered=False))
        parts.vectors += width + _norm(config)
    if config.head == "sentence" and config.pooling == "first":
        parts.matrices.append(Matrix(width, width, "asked", layered=False))
        parts.vectors += width
    return parts.finished(config, config.output_size, config.head == "masked" and config.ties_output)


def _vision(config: VisionConfig) -> Anatomy:
    patches = Matrix(config.d_model, config.channels * config.patch**2, "source", layered=False)
    parts = _Parts([patches], vectors=config.d_model)  # which is the class token
    parts.embedding(config, normalised=False)
    parts.stack(config, config.encoder_layers)
    return parts.finished(config, config.labels, ties_output=False)


def _norm(config: TransformerConfig) -> int:
    return config.d_model * (2 if config.norm == "layer" else 1)


def _is_gated(config: TransformerConfig) -> bool:
    return config.activation in ("reglu", "geglu", "geglu_tanh", "swiglu")


# Operations that are not of a matrix of weights


def _attention_flops(network: Network, config: TransformerConfig, load: Load) -> float:
    """QKᵀ and its product with V: 2·T·S·H·(d_k + d_v) for each row, and twice that on the way back."""

    def products(shape: TransformerConfig, queries: float, keys: float) -> float:
        return 6 * load.rows * queries * keys * shape.heads * (shape.key_width + shape.value_width)

    if network != "transformer":
        layers = config.decoder_layers if network == "decoder-only" else config.encoder_layers
        return layers * products(config, load.source, load.source)
    side = config.decoder_side
    decoder = products(side, load.target, load.target) + products(side, load.target, load.source)
    return config.encoder_layers * products(config, load.source, load.source) + side.decoder_layers * decoder


def _orthogonal_flops(matrix: Matrix) -> float:
    """Newton and Schulz: XXᵀ, its square, and the product of that with X, in each round."""
    shorter, longer = sorted((matrix.outputs, matrix.inputs))
    return NEWTON_ROUNDS * (4.0 * shorter**2 * longer + 2.0 * shorter**3)


# What is kept for the way back, for each token


def _attention_kept(config: TransformerConfig, keys: float, crosses: bool = False) -> Kept:
    """Of attention and what surrounds it: its input, queries, keys, values, weights, heads, and the norm's input."""
    heads = config.heads * (config.key_width + config.value_width)  # queries, and what the heads give
    own = 0 if crosses else config.heads * (config.key_width + config.value_width)  # keys and values: the memory's
    weights = config.heads * keys * (3 if config.attention_dropout else 1)
    return Kept(config.d_model + heads + own, _norm_kept(config), config.d_model * bool(config.dropout), weights)


def _feedforward_kept(config: TransformerConfig) -> Kept:
    """Of the feed-forward network: its input and what is between its matrices, and the norm's input."""
    inner = 1 if config.activation in ("relu", "reglu") else 2  # all but ReLU need what they were given, too
    inner += 2 * _is_gated(config)
    dropped = config.d_model * bool(config.dropout) + config.d_ff * bool(config.activation_dropout)
    inner += bool(config.activation_dropout)
    return Kept(config.d_model + inner * config.d_ff, _norm_kept(config), dropped)


def _norm_kept(config: TransformerConfig) -> int:
    """A normalisation's input; RMSNorm is several operations, each with its own."""
    return config.d_model * (1 if config.norm == "layer" else 2)
