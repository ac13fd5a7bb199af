"""A random model that reads and writes many scripts, to be looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from transduce.attention_lens import AttentionMaps
from transduce.bundle import Bundle, BundleConfig
from transduce.model import Transformer, TransformerConfig
from transduce.text import Vocabularies
from transduce.translator import Translator

PAIRS = [
    ("We painted the house.", "بيتنا كبير وجميل"),
    ("They repaired the bicycles.", "קראתי ספר טוב מאוד"),
    ("Kofi understands the question.", "मैं हिन्दी पढ़ता हूँ"),
    ("Where is the station?", "東京は大きい都市です"),
]


def random_translator(path: Path, languages: tuple[str, ...] = (), **shape: object) -> Translator:
    """Two layers and three heads of chance, in a model directory."""
    vocabularies = Vocabularies.learn(PAIRS * 3, 360, languages=languages)
    torch.manual_seed(5)
    sizes = {"d_model": 24, "d_ff": 32, "heads": 3, "encoder_layers": 2, "decoder_layers": 2, "tying": "none"}
    model = Transformer(TransformerConfig.tiny(vocabularies.source.size, **sizes | shape))
    weights = {name: value.detach() for name, value in model.named_parameters()}
    config = BundleConfig(
        architecture=asdict(model.config),
        source_language="en",
        target_language=languages[0] if languages else "xx",
        target_languages=list(languages),
    )
    return Translator(Bundle.write(path / "random", config, weights, vocabularies, {}, ""))


@pytest.fixture(scope="session")
def make_translator(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Translator]:
    return lambda *languages, **shape: random_translator(tmp_path_factory.mktemp("models"), languages, **shape)


@pytest.fixture(scope="session")
def translator(make_translator: Callable[..., Translator]) -> Translator:
    return make_translator()


@pytest.fixture(scope="session")
def maps(translator: Translator) -> AttentionMaps:
    """Of a translation that was given: three Arabic words, some of several subwords."""
    return translator.attention("We repaired the station, Kofi.", target="بيتنا كبير قديم")
