"""The shape of a Transformer: one frozen record, with the paper's values as defaults."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeVar, get_args

from transduce.errors import ConfigError, nearest

__all__ = [
    "Activation",
    "Initialisation",
    "Norm",
    "NormPosition",
    "PositionKind",
    "TransformerConfig",
    "Tying",
]

NormPosition = Literal["post", "pre"]
Norm = Literal["layer", "rms"]
PositionKind = Literal["sinusoidal", "learned", "rotary", "relative", "alibi", "none"]
Activation = Literal["relu", "gelu", "gelu_tanh", "silu", "reglu", "geglu", "geglu_tanh", "swiglu"]
Tying = Literal["all", "embeddings", "target", "none"]
Initialisation = Literal["auto", "xavier", "depth_scaled"]

CHOICES: dict[str, tuple[str, ...]] = {
    "norm_position": get_args(NormPosition),
    "norm": get_args(Norm),
    "positions": get_args(PositionKind),
    "activation": get_args(Activation),
    "tying": get_args(Tying),
    "initialisation": get_args(Initialisation),
}

Shape = TypeVar("Shape", bound="TransformerConfig")

UNSET = {"target_vocab_size", "key_value_heads", "d_k", "d_v", "decoder_heads", "decoder_d_ff"}
"""Sizes that may be left unset."""

SMALLEST = dict.fromkeys(UNSET, 1) | {
    "vocab_size": 1,
    "d_model": 1,
    "d_ff": 1,
    "heads": 1,
    "encoder_layers": 0,
    "decoder_layers": 0,
    "max_length": 1,
    "relative_buckets": 4,
    "relative_max_distance": 1,
}


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """What a Transformer looks like. The defaults are the paper's base model.

    Build one with a preset and override any field:
    `TransformerConfig.base(vocab_size=37_000, norm_position="pre", encoder_layers=12)`.
    """

    vocab_size: int
    """Number of token ids; of the source alone when `target_vocab_size` is set."""
    target_vocab_size: int | None = None
    """Number of target ids where source and target do not share a vocabulary."""
    encoder_layers: int = 6
    """N, encoder side."""
    decoder_layers: int = 6
    """N, decoder side."""
    d_model: int = 512
    """Width of the residual stream."""
    d_ff: int = 2048
    """Inner width of the feed-forward network."""
    heads: int = 8
    """h, the number of attention heads."""
    key_value_heads: int | None = None
    """Heads of keys and values, each shared by a group of query heads; as many as `heads` if unset."""
    d_k: int | None = None
    """Width of queries and keys in a head; d_model / heads if unset."""
    d_v: int | None = None
    """Width of values in a head; d_model / heads if unset."""
    decoder_heads: int | None = None
    """Heads of the decoder where it has other than `heads`."""
    decoder_d_ff: int | None = None
    """Inner width of the decoder's feed-forward networks where it is other than `d_ff`."""
    dropout: float = 0.1
    """P_drop: on each sub-layer's output and on the sum of embedding and position (§5.4)."""
    attention_dropout: float = 0.0
    """Dropout on attention weights; not in the paper."""
    activation_dropout: float = 0.0
    """Dropout inside the feed-forward network; not in the paper."""
    activation: Activation = "relu"
    """Of the feed-forward network; reglu, geglu and swiglu are the gated forms, `_tanh` computes gelu by a tanh."""
    norm: Norm = "layer"
    """LayerNorm or RMSNorm."""
    norm_position: NormPosition = "post"
    """`post` as published, LayerNorm(x + Sublayer(x)); `pre` is x + Sublayer(LayerNorm(x))."""
    norm_epsilon: float = 1e-5
    """Added to the variance before the root."""
    positions: PositionKind = "sinusoidal"
    """How order is told: added to embeddings (sinusoidal, learned) or inside self-attention (the others)."""
    max_length: int = 1024
    """Size of the table of learned positions; the other kinds have no limit."""
    relative_buckets: int = 32
    """Distances told apart by relative positions."""
    relative_max_distance: int = 128
    """Distance from which relative positions no longer tell apart."""
    attention_bias: bool = False
    """Biases in the attention projections; the paper writes none, most code has them."""
    feedforward_bias: bool = True
    """b₁ and b₂ of equation 2."""
    tying: Tying = "all"
    """One matrix for both embeddings and the output (`all`, the paper), for two of the three (`embeddings`, or `target`
    and the output), or none."""
    scale_embeddings: bool = True
    """Multiply embeddings by √d_model (§3.4)."""
    embedding_norm: bool = False
    """Normalise the sum of embedding and position, as BERT and BART do; not in the paper."""
    logits_bias: bool = False
    """A bias of each token in the output; not in the paper."""
    initialisation: Initialisation = "auto"
    """`auto` is depth-scaled Xavier for post-norm, which trains at any depth, and plain Xavier for pre-norm."""
    pad_id: int = 0
    """Marks padding; may stand only at the end of a sequence."""
    bos_id: int = 1
    """Starts the decoder's input."""
    eos_id: int = 2
    """Ends a sentence."""

    @classmethod
    def tiny(cls: type[Shape], vocab_size: int, **overrides: Any) -> Shape:
        """4+4 layers of width 128: minutes on a laptop."""
        return cls._preset(overrides, vocab_size, encoder_layers=4, decoder_layers=4, d_model=128, d_ff=256, heads=4)

    @classmethod
    def small(cls: type[Shape], vocab_size: int, **overrides: Any) -> Shape:
        """4+4 layers of width 256: an hour or two on a laptop."""
        return cls._preset(overrides, vocab_size, encoder_layers=4, decoder_layers=4, d_model=256, d_ff=1024, heads=4)

    @classmethod
    def base(cls: type[Shape], vocab_size: int, **overrides: Any) -> Shape:
        """The paper's base model."""
        return cls._preset(overrides, vocab_size)

    @classmethod
    def big(cls: type[Shape], vocab_size: int, **overrides: Any) -> Shape:
        """The paper's big model (dropout 0.3 for English–German; it used 0.1 for English–French)."""
        return cls._preset(overrides, vocab_size, d_model=1024, d_ff=4096, heads=16, dropout=0.3)

    @classmethod
    def _preset(cls: type[Shape], overrides: dict[str, Any], vocab_size: int, **values: Any) -> Shape:
        known = {field.name for field in fields(cls)}
        for name in overrides:
            if name not in known:
                raise ConfigError(f"{name!r} is not a setting of the model.", remedy=nearest(name, known))
        return cls(**{"vocab_size": vocab_size, **values, **overrides})

    def replace(self: Shape, **overrides: Any) -> Shape:
        """The same shape with some fields changed."""
        return replace(self, **overrides)

    @property
    def key_width(self) -> int:
        """d_k as it is used."""
        return self.d_k if self.d_k is not None else self.d_model // self.heads

    @property
    def value_width(self) -> int:
        """d_v as it is used."""
        return self.d_v if self.d_v is not None else self.d_model // self.heads

    @property
    def key_value_groups(self) -> int:
        """Number of key and value heads as it is used."""
        return self.key_value_heads if self.key_value_heads is not None else self.heads

    @property
    def ties_output(self) -> bool:
        """Whether the output's matrix is that of the (target's) embedding."""
        return self.tying in ("all", "target")

    @property
    def decoder_side(self: Shape) -> Shape:
        """The shape of the decoder's layers: that of the encoder's, unless the config sets them apart."""
        if self.decoder_heads is None and self.decoder_d_ff is None:
            return self
        heads, d_ff = self.decoder_heads or self.heads, self.decoder_d_ff or self.d_ff
        return replace(self, heads=heads, d_ff=d_ff, decoder_heads=None, decoder_d_ff=None)

    @property
    def output_size(self) -> int:
        """Number of target ids: the width of the logits."""
        return self.target_vocab_size if self.target_vocab_size is not None else self.vocab_size

    def __post_init__(self) -> None:
        self._check_choices()
        self._check_sizes()
        self._check_heads()
        self._check_special_ids()
        _ = self.decoder_side  # whose heads are checked like these
        if self.target_vocab_size is not None and self.tying in ("all", "embeddings"):
            raise ConfigError(
                f"tying={self.tying!r} shares one matrix between source and target, but target_vocab_size="
                f"{self.target_vocab_size} sets their vocabularies apart.",
                remedy="Use tying='target', or leave target_vocab_size unset.",
            )

    def _check_choices(self) -> None:
        for name, choices in CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise ConfigError(f"{name}={value!r} is unknown.", remedy=nearest(str(value), choices))

    def _check_sizes(self) -> None:
        for name, smallest in SMALLEST.items():
            value = getattr(self, name)
            if value is None and name in UNSET:
                continue
            if not isinstance(value, int) or value < smallest:
                raise ConfigError(
                    f"{name}={value!r} cannot work.", remedy=f"It must be a whole number, {smallest} or more."
                )
        if self.relative_buckets % 4:
            raise ConfigError(
                f"relative_buckets={self.relative_buckets} cannot be halved twice: once by direction, once "
                f"into near and far.",
                remedy="Use a multiple of 4, such as 32.",
            )
        if self.relative_max_distance <= self.relative_buckets // 2:
            raise ConfigError(
                f"relative_max_distance={self.relative_max_distance} is reached by the {self.relative_buckets // 2} "
                f"buckets of one distance each that relative_buckets={self.relative_buckets} has.",
                remedy=f"Use relative_max_distance={4 * self.relative_buckets}.",
            )
        for name in ("dropout", "attention_dropout", "activation_dropout"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 <= value < 1:
                raise ConfigError(f"{name}={value!r} is not a probability below 1.", remedy="Use 0 to below 1.")
        if self.norm_epsilon <= 0:
            raise ConfigError(f"norm_epsilon={self.norm_epsilon} must be positive.", remedy="Use 1e-5.")

    def _check_heads(self) -> None:
        if (self.d_k is None or self.d_v is None) and self.d_model % self.heads:
            raise ConfigError(
                f"d_model={self.d_model} is not divisible by heads={self.heads}.",
                remedy=f"Use heads={_close_divisor(self.d_model, self.heads)}, or set d_k and d_v yourself.",
            )
        if self.heads % self.key_value_groups:
            raise ConfigError(
                f"heads={self.heads} is not divisible by key_value_heads={self.key_value_heads}.",
                remedy="Each key-value head serves the same number of query heads.",
            )
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ConfigError(
                f"d_model={self.d_model} is odd, but sinusoidal positions come in pairs of sine and cosine.",
                remedy=f"Use d_model={self.d_model + 1}.",
            )
        if self.positions == "rotary" and self.key_width % 2:
            raise ConfigError(
                f"d_k={self.key_width} is odd, but rotary positions turn pairs of dimensions.",
                remedy="Choose an even d_k.",
            )

    def _check_special_ids(self) -> None:
        ids = {"pad_id": self.pad_id, "bos_id": self.bos_id, "eos_id": self.eos_id}
        size = min(self.vocab_size, self.output_size)
        for name, value in ids.items():
            if not isinstance(value, int) or not 0 <= value < size:
                raise ConfigError(
                    f"{name}={value!r} lies outside the vocabulary of {size} ids.",
                    remedy=f"Use an id from 0 to {size - 1}.",
                )
        if self.eos_id == self.pad_id:  # the start may be either: where a model reads it, nothing else can stand
            raise ConfigError(
                f"eos_id={self.eos_id} is also pad_id.",
                remedy="The end of a sentence needs an id of its own.",
            )


def _close_divisor(number: int, wanted: int) -> int:
    """The divisor of a number that is closest to what was wanted, the larger of two; 1 where it is far to the next."""
    for distance in range(min(wanted, 4096)):
        for divisor in (wanted + distance, wanted - distance):
            if number % divisor == 0:
                return divisor
    return 1
