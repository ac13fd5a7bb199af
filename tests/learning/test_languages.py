"""One model, two target languages: a tag before the source decides which of them is written."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

WORDS = {
    "de": ["null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun"],
    "fr": ["zéro", "un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf"],
}


def test_each_language_is_learned_to_90_percent_and_never_mixed_with_the_other(
    transduce: Callable[..., Any], small_model: list[str], tmp_path: Path
) -> None:
    """French has half the pairs, which an epoch sees twice; both sides have a vocabulary of their own."""
    generator = random.Random(4)
    numbers = [[generator.randrange(10) for _ in range(generator.randint(2, 6))] for _ in range(6_300)]
    for name, language, part in (
        ("a", "de", numbers[:4000]),
        ("b", "fr", numbers[4000:6000]),
        ("test", "", numbers[6000:]),
    ):
        (tmp_path / f"{name}.en").write_text("".join(" ".join(map(str, each)) + "\n" for each in part))
        if language:
            texts = (" ".join(WORDS[language][digit] for digit in each) for each in part)
            (tmp_path / f"{name}.{language}").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    files = [tmp_path / name for name in ("a.en", "a.de", "b.en", "b.fr")]
    settings = ["tokenizer.language_tags=true", "tokenizer.shared=false", "training.validate_every=1000"]
    model = tmp_path / "model"
    trained = transduce("train", *files, "-o", model, "--weights", "1,2", "--steps", 350, *small_model, *settings)
    assert "Confidence is off by" in trained.stdout
    # Each dev sentence was asked for in its own language, or half of them would have come out wrong.
    assert json.loads((model / "scores.json").read_text())["calibration"]["chrf"] > 0.9
    for language, words in WORDS.items():
        translated = transduce(
            "translate", "-m", model, "-i", tmp_path / "test.en", "--to", language
        ).stdout.splitlines()
        expected = [" ".join(words[digit] for digit in each) for each in numbers[6000:]]
        right = sum(ours == theirs for ours, theirs in zip(translated, expected, strict=True))
        assert right / len(expected) >= 0.9, language
        own = sum(set(text.split()) <= set(words) for text in translated)
        assert own / len(expected) >= 0.99, language
    # Adapted to one of them, both dev sets are still asked for in their own languages.
    adapted = tmp_path / "adapted"
    transduce("train", *files[2:], "--from", model, "-o", adapted, "--steps", 1)
    before = json.loads((adapted / "scores.json").read_text())["adapted"]["bleu"]["before"]
    assert min(before.values()) > 80
    assert len(before) == 2
    described = json.loads((adapted / "config.json").read_text())
    assert described["target_languages"] == ["fr", "de"]  # what it was adapted to is what it writes unless asked
    other = tmp_path / "b.es"
    other.write_bytes(files[3].read_bytes())
    refused = transduce("train", files[2], other, "--from", model, "-o", tmp_path / "no", "--steps", 1, code=2)
    said = " ".join(refused.stderr.split())
    assert "b.es: the model to start from has no tag for the language 'es'. It writes de, fr;" in said
