"""Real sentences are learned by heart through the command line: a model that cannot do that cannot learn."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transduce.data.builtin import builtin_corpus

PAIRS = 2_000
SETTINGS = [
    "model.encoder_layers=2", "model.decoder_layers=2", "model.d_model=128", "model.d_ff=256", "model.heads=4",
    "model.dropout=0", "tokenizer.vocab_size=2000", "training.label_smoothing=0", "training.batch_tokens=1024",
    "training.rate=0.006", "training.warmup=50", "training.average_decay=0.9", "training.metric=loss",
    "training.validate_every=250", "training.weight_decay=0", "data.variants=0", "decoding.alpha=0.6",
]  # fmt: skip


def test_two_thousand_pairs_are_learned_by_heart(transduce: Callable[..., Any], tmp_path: Path) -> None:
    # Of sources with several translations the first: no model can give two answers to the same question.
    by_source: dict[str, str] = {}
    for pair in builtin_corpus("tatoeba-en-de").pairs():
        by_source.setdefault(pair.source, pair.target)
        if len(by_source) == PAIRS:
            break
    english, german = tmp_path / "train.en", tmp_path / "train.de"
    english.write_text("".join(f"{line}\n" for line in by_source), encoding="utf-8")
    german.write_text("".join(f"{line}\n" for line in by_source.values()), encoding="utf-8")
    model = tmp_path / "model"
    dev = ["--dev-source", english, "--dev-target", german]
    trained = transduce("train", english, german, *dev, "-o", model, "--steps", 150, *SETTINGS)
    assert "2,000 pairs to train on, 2,000 to measure on" in trained.stdout
    assert "skipped" not in trained.stdout  # nothing of an ordinary training is taken for a loss spike
    report = json.loads(transduce("evaluate", model, english, german, "--json").stdout)
    assert report["sentences"] == PAIRS
    assert report["bleu"] > 90
