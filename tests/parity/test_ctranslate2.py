"""A compiled model writes what ours writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ctranslate2
import pytest
import torch

from transduce.decoding import DecodingOptions
from transduce.engines.ctranslate2_engine import POSITIONS, CTranslate2Engine
from transduce.engines.torch_engine import TorchEngine
from transduce.errors import ConfigError
from transduce.interop.ctranslate2 import compile_model
from transduce.model import Transformer, TransformerConfig
from transduce.text import Tokenizer, Vocabularies

LINES = [
    f"{a} {b} {c}" for a in ("red", "green", "blue") for b in ("bird", "horse", "house") for c in ("sings", "runs")
]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.learn(LINES, 300)


def make(tokenizer: Tokenizer, **overrides: Any) -> Transformer:
    """A random model whose output is not nearly uniform, so that rounding does not decide it."""
    settings = {"encoder_layers": 2, "decoder_layers": 3, "d_model": 32, "d_ff": 64, "heads": 4} | overrides
    model = Transformer(TransformerConfig.tiny(tokenizer.size, **settings)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.2)
        if settings.get("tying") == "none":
            model.projection.weight *= 3
    return model


@pytest.mark.parametrize(
    "overrides",
    [
        {"tying": "none"},
        {"tying": "all"},
        {"tying": "none", "norm_position": "pre", "attention_bias": True, "activation": "gelu"},
        {"tying": "target", "scale_embeddings": False, "activation": "silu"},
    ],
    ids=lambda overrides: " ".join(map(str, overrides.values())),
)
def test_float32_scores_and_tokens_are_ours(tokenizer: Tokenizer, tmp_path: Path, overrides: dict[str, Any]) -> None:
    model = make(tokenizer, **overrides)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    compile_model(model, Vocabularies(tokenizer, tokenizer), tmp_path / "compiled", "float32")
    theirs = ctranslate2.Translator(str(tmp_path / "compiled"), device="cpu")
    sources = tokenizer.encode_batch(LINES)
    tokens = [[*tokenizer.pieces(ids), "</s>"] for ids in sources]
    limit = 12
    options = DecodingOptions(beam=1, length_penalty="none", max_length_ratio=0, max_length_extra=limit)
    ours = [best for (best, *_) in TorchEngine(model).decode(sources, options)]

    written = [tokenizer.pieces(each.tokens[:-1]) for each in ours]
    scored = theirs.score_batch(tokens, written)
    for each, result in zip(ours, scored, strict=True):
        assert sum(result.log_probs) == pytest.approx(each.log_probability, abs=2e-2)
    results = theirs.translate_batch(tokens, beam_size=1, max_decoding_length=limit - 1)
    same = [result.hypotheses[0] == ids for result, ids in zip(results, written, strict=True)]
    assert sum(same) >= 0.95 * len(same)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_model_of_two_vocabularies_and_a_tag_is_ours_too(tmp_path: Path) -> None:
    pairs = [(line, " ".join(reversed(line.upper().split()))) for line in LINES]
    target = Tokenizer.learn([written for _, written in pairs], 290)
    vocabularies = Vocabularies(Tokenizer.learn(LINES, 300, tags=["<2de>", "<2fr>"]), target)
    model = make(vocabularies.source, target_vocab_size=target.size, tying="none")
    compile_model(model, vocabularies, tmp_path / "compiled", "float32")
    theirs = ctranslate2.Translator(str(tmp_path / "compiled"), device="cpu")
    scores = []
    for language in ("de", "fr"):
        sources = vocabularies.encode_sources(LINES, language)
        tokens = [[*vocabularies.source.pieces(ids), "</s>"] for ids in sources]
        targets = target.encode_batch([written for _, written in pairs])
        ours = TorchEngine(model).score(sources, targets)
        results = theirs.score_batch(tokens, [target.pieces(ids) for ids in targets])
        for each, result in zip(ours, results, strict=True):
            assert result.log_probs == pytest.approx(each.token_scores, abs=1e-3)
        scores.append([each.log_probability for each in ours])
    assert all(abs(german - french) > 1e-3 for german, french in zip(*scores, strict=True))  # the tag is read


def test_given_targets_are_scored_as_by_ours(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """Also those that are longer than its positions, which ours scores, and those after a start of their own."""
    model = make(tokenizer, tying="none")
    vocabularies = Vocabularies(tokenizer, tokenizer)
    compile_model(model, vocabularies, tmp_path / "compiled", "float32")
    ours = TorchEngine(model)
    engine = CTranslate2Engine(tmp_path / "compiled", vocabularies, lambda: ours)
    sources = tokenizer.encode_batch(LINES)
    targets = [*reversed(sources[1:]), sources[0] * (1 + POSITIONS // len(sources[0]))]
    for start in ([], sources[3][:1]):
        for mine, theirs in zip(
            ours.score(sources, targets, start), engine.score(sources, targets, start), strict=True
        ):
            assert theirs.tokens == mine.tokens
            assert theirs.token_scores == pytest.approx(mine.token_scores, abs=1e-3)
            assert theirs.log_probability == pytest.approx(mine.log_probability, abs=1e-1)
            assert theirs.score == pytest.approx(mine.score, abs=1e-2)


def test_int8_is_smaller_and_leaves_our_model_alone(tokenizer: Tokenizer, tmp_path: Path) -> None:
    model = make(tokenizer, d_model=64, d_ff=256)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    for kind in ("int8", "float32"):
        compile_model(model, Vocabularies(tokenizer, tokenizer), tmp_path / kind, kind)  # type: ignore[arg-type]
    sizes = {kind: (tmp_path / kind / "model.bin").stat().st_size for kind in ("int8", "float32")}
    assert sizes["int8"] < 0.5 * sizes["float32"]
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_only_models_wide_enough_for_int8_get_it_by_default(tokenizer: Tokenizer, tmp_path: Path) -> None:
    for width, small in ((64, False), (128, True)):
        model = make(tokenizer, d_model=width)
        compile_model(model, Vocabularies(tokenizer, tokenizer), tmp_path / "default")
        compile_model(model, Vocabularies(tokenizer, tokenizer), tmp_path / "float32", "float32")
        sizes = [(tmp_path / name / "model.bin").stat().st_size for name in ("default", "float32")]
        assert (sizes[0] < 0.7 * sizes[1]) is small


@pytest.mark.parametrize(
    ("overrides", "name"),
    [
        ({"positions": "rotary"}, "positions='rotary'"),
        ({"norm": "rms"}, "norm='rms'"),
        ({"activation": "swiglu"}, "activation='swiglu'"),
        ({"d_k": 4}, "d_k=4"),
        ({"key_value_heads": 2}, "key_value_heads=2"),
    ],
)
def test_what_has_no_counterpart_is_refused_by_name(
    tokenizer: Tokenizer, tmp_path: Path, overrides: dict[str, Any], name: str
) -> None:
    with pytest.raises(ConfigError, match=name):
        compile_model(make(tokenizer, **overrides), Vocabularies(tokenizer, tokenizer), tmp_path / "compiled")
    assert not (tmp_path / "compiled").exists()
