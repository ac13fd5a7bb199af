"""What is compared: the cases, and what the paper says of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["BASE", "CASES", "CLAIMS", "RECURRENT", "TRANSFORMER", "Case", "Claim"]

TRANSFORMER = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 128, "d_ff": 256, "heads": 8, "dropout": 0.1}
"""The paper's base model, made narrow: 8 heads, d_k = d_model / heads, dropout 0.1, label smoothing 0.1."""
TRAINING = {
    "batch_tokens": 1024,
    "schedule": "inverse_sqrt",
    "rate": 0.004,
    "warmup": 400,
    "clip": 1.0,
    "average_decay": 0.99,
}


@dataclass(frozen=True)
class Case:
    """A network and how it is trained."""

    name: str
    network: Literal["transformer", "recurrent"] = "transformer"
    model: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    row: str = ""
    """Of the paper's Table 3, and the setting there."""
    paper: tuple[float, float] | None = None
    """Perplexity and BLEU there."""


def _variation(name: str, row: str, paper: tuple[float, float], **settings: Any) -> Case:
    model = {key: value for key, value in settings.items() if key != "label_smoothing"}
    training = {key: value for key, value in settings.items() if key == "label_smoothing"}
    return Case(name, "transformer", TRANSFORMER | model, TRAINING | training, row, paper)


BASE = _variation("Transformer", "base: 8 heads, d_k 64", (4.92, 25.8))
RECURRENT = Case(
    "recurrent",
    "recurrent",
    {"d_model": 128, "hidden": 136, "attention_width": 128, "dropout": 0.1},
    TRAINING,
)
"""As many parameters as the Transformer, to within two in a hundred; half the rate is worse."""
CASES = [
    BASE,
    RECURRENT,
    _variation("1 head", "A: 1 head", (5.29, 24.9), heads=1),
    _variation("4 heads", "A: 4 heads", (5.00, 25.5), heads=4),
    _variation("d_k a quarter", "B: d_k 16", (5.16, 25.1), d_k=4),
    _variation("no dropout", "D: dropout 0", (5.77, 24.6), dropout=0.0),
    _variation("no label smoothing", "D: ε_ls 0", (4.67, 25.3), label_smoothing=0.0),
    _variation("learned positions", "E: learned positions", (4.92, 25.7), positions="learned", max_length=256),
]


@dataclass(frozen=True)
class Claim:
    """What the paper's table says of a case against the base model."""

    words: str
    case: str
    metric: Literal["bleu", "perplexity"]
    expected: Literal["better", "worse", "equal"]


CLAIMS = [
    Claim("One head is worse than eight", "1 head", "bleu", "worse"),
    Claim("Four heads are a little worse than eight", "4 heads", "bleu", "worse"),
    Claim("Smaller keys hurt", "d_k a quarter", "bleu", "worse"),
    Claim("Without dropout it overfits", "no dropout", "bleu", "worse"),
    Claim("Without label smoothing BLEU is lower", "no label smoothing", "bleu", "worse"),
    Claim("… but perplexity is better", "no label smoothing", "perplexity", "better"),
    Claim("Learned positions are nearly identical", "learned positions", "bleu", "equal"),
]
