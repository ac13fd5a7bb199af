"""Calibrating a model: its directory learns a confidence, and every translation has one from then on."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch

from transduce.bundle import Bundle, BundleConfig
from transduce.calibration import calibrate
from transduce.confidence import Confidence
from transduce.errors import BundleError, InputError, StorageError
from transduce.model import Transformer, TransformerConfig
from transduce.text import Vocabularies
from transduce.translator import Translator

WORDS = ("We", "They", "Kofi", "Ama", "painted", "understand", "repaired", "house", "bicycles", "question")
SOURCES = [f"{one} {two} {three}." for one in WORDS for two in WORDS[4:7] for three in WORDS[7:]]
REFERENCES = [source.upper() for source in SOURCES]
SURE = Confidence(
    base=0.2,
    token_probability=0.5,
    sentence_probability=0.2,
    length=0.02,
    odd_length=-0.01,
    usual_ratio=0.0,
    shortest=2,
    longest=40,
)


@pytest.fixture(scope="module")
def random_model(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A random model that knows two target languages; to copy, not to change."""
    pairs = list(zip(SOURCES, REFERENCES, strict=True))
    vocabularies = Vocabularies.learn(pairs, 320, shared=True, languages=["de", "fr"])
    torch.manual_seed(5)
    shape = {"d_model": 16, "d_ff": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "tying": "none"}
    model = Transformer(TransformerConfig.tiny(vocabularies.source.size, **shape))
    weights = {name: value.detach() for name, value in model.named_parameters()}
    config = BundleConfig(
        architecture=asdict(model.config),
        target_language="de",
        target_languages=["de", "fr"],
        decoding={"max_length_extra": 4},  # a random model seldom ends a sentence by itself
    )
    scores = {"dev": {"bleu": 31.4}}
    return Bundle.write(tmp_path_factory.mktemp("models") / "random", config, weights, vocabularies, scores, "card")


@pytest.fixture
def bundle(random_model: Bundle, tmp_path: Path) -> Bundle:
    return Bundle.open(Path(shutil.copytree(random_model.path, tmp_path / "model")))


@pytest.fixture
def sure(random_model: Bundle) -> Translator:
    """The random model with a confidence."""
    return Translator(replace(random_model, config=replace(random_model.config, confidence=SURE)))


def change(bundle: Bundle, **values: Any) -> None:
    path = bundle.path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def scores_of(bundle: Bundle) -> Any:
    return json.loads((bundle.path / "scores.json").read_text())


# What translations say


def test_each_way_to_translate_has_the_confidence_of_its_own_signs(sure: Translator) -> None:
    (source,) = sure.vocabularies.encode_sources(["We painted house."], "de")
    hypotheses = sure.engine.decode([source], sure.sentences(["x"], n_best=3).options)[0]
    translation = sure.translate("We painted house.", n_best=3)
    for way, hypothesis in zip(translation.alternatives, hypotheses, strict=True):
        written = len(hypothesis.tokens)
        probability = math.exp(sum(hypothesis.token_scores) / written)
        odd = abs(math.log(written / (len(source) + 1)))
        expected = 0.2 + 0.5 * probability + 0.2 * probability**written + 0.02 * math.log(written) - 0.01 * odd
        assert way.confidence == pytest.approx(expected, abs=1e-6)
    assert translation.confidence == translation.alternatives[0].confidence


def test_it_does_not_depend_on_the_length_penalty(sure: Translator) -> None:
    kinds: list[dict[str, Any]] = [{"alpha": 0.0}, {"alpha": 1.0}, {"length_penalty": "power"}]
    found = [sure.translate("They repaired bicycles.", beam=1, **options) for options in kinds]
    assert len({one.text for one in found}) == 1
    assert len({round(one.score, 6) for one in found}) == 3
    assert len({one.confidence for one in found}) == 1


def test_that_of_several_sentences_is_their_mean_by_length(sure: Translator) -> None:
    texts = ["We painted house.", "Kofi understand the bicycles, and Ama repaired the question of the house."]
    one, other = sure.translate(texts)
    together = sure.translate(f"{texts[0]}\n\n{texts[1]}\n")
    assert one.confidence is not None
    assert other.confidence is not None
    assert one.confidence != pytest.approx(other.confidence, abs=1e-4)
    lengths = len(one.text), len(other.text)
    mean = (one.confidence * lengths[0] + other.confidence * lengths[1]) / sum(lengths)
    assert together.confidence == pytest.approx(mean, abs=1e-5)


def test_where_nothing_can_be_said_there_is_none(sure: Translator, random_model: Bundle) -> None:
    assert sure.translate("We", sampling=True, n_best=2).alternatives[1].confidence is None
    assert sure.translate("").confidence is None
    assert sure.translate(" \n ").confidence is None
    assert Translator(random_model).translate("We").confidence is None


# Calibrating


def test_a_model_learns_its_confidence(bundle: Bundle) -> None:
    before = {file.name: file.read_bytes() for file in bundle.path.iterdir()}
    seen: list[int] = []
    calibrated, measured = calibrate(bundle, SOURCES, REFERENCES, "de", progress=seen.append)
    assert sum(seen) == len(SOURCES)
    changed = {file.name for file in bundle.path.iterdir() if before.get(file.name) != file.read_bytes()}
    assert changed == {"config.json", "scores.json"}
    opened = Bundle.open(bundle.path)
    assert opened == calibrated
    assert opened.config.confidence is not None
    assert replace(opened.config, confidence=None) == bundle.config
    assert scores_of(opened) == {"dev": {"bleu": 31.4}, "calibration": measured.as_dict()}
    assert measured.sentences == len(SOURCES)
    assert measured.error < 0.05
    assert measured.confidence == pytest.approx(measured.chrf, abs=0.01)
    assert Translator(opened).translate("We painted house.").confidence is not None


def test_the_test_set_is_measured_on_and_not_learned_from(bundle: Bundle, tmp_path: Path) -> None:
    other = Bundle.open(Path(shutil.copytree(bundle.path, tmp_path / "other")))
    alone, _ = calibrate(bundle, SOURCES[10:], REFERENCES[10:])
    both, measured = calibrate(other, SOURCES[10:], REFERENCES[10:], test=(SOURCES[:10], REFERENCES[:10]))
    assert both.config == alone.config
    assert scores_of(both)["calibration"]["sentences"] == measured.sentences == len(SOURCES) - 10
    test = scores_of(both)["calibration"]["test"]
    confidences = [each.confidence or 0 for each in Translator(both).translate(SOURCES[:10])]
    assert test["sentences"] == 10
    assert test["confidence"] == pytest.approx(sum(confidences) / 10)


def test_each_text_goes_into_its_own_language(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, list[str]] = {}
    sentences = Translator.sentences

    def noted(self: Translator, texts: Sequence[str], to: str | None = None, **options: Any) -> Any:
        asked.setdefault(str(to), []).extend(texts)
        return sentences(self, texts, to, **options)

    monkeypatch.setattr(Translator, "sentences", noted)
    languages = ["fr" if place % 3 == 0 else "de" for place in range(len(SOURCES))]
    calibrate(bundle, SOURCES, REFERENCES, languages)
    assert asked == {"fr": SOURCES[::3], "de": [text for place, text in enumerate(SOURCES) if place % 3]}


def test_too_few_texts_change_nothing(bundle: Bundle) -> None:
    before = {file.name: file.read_bytes() for file in bundle.path.iterdir()}
    with pytest.raises(InputError, match="49 texts are too few"):
        calibrate(bundle, SOURCES[:49], REFERENCES[:49])
    assert {file.name: file.read_bytes() for file in bundle.path.iterdir()} == before


@pytest.mark.parametrize("files", [0, 1])
def test_a_full_disk_leaves_the_model_as_it_was(bundle: Bundle, monkeypatch: pytest.MonkeyPatch, files: int) -> None:
    before = {file.name: file.read_bytes() for file in bundle.path.iterdir()}
    calls = count()

    def full(descriptor: int) -> None:
        if next(calls) == files:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="the disk is full"):
        calibrate(bundle, SOURCES, REFERENCES)
    assert {name: (bundle.path / name).read_bytes() for name in before} == before
    assert Bundle.open(bundle.path).config.confidence is None


# What a directory may say


def test_a_confidence_goes_through_the_directory_and_old_ones_have_none(bundle: Bundle) -> None:
    assert bundle.calibrated(SURE, {"error": 0.01}).config.confidence == SURE
    assert Bundle.open(bundle.path).config.confidence == SURE
    values = json.loads((bundle.path / "config.json").read_text())
    del values["confidence"]
    (bundle.path / "config.json").write_text(json.dumps(values))
    assert Bundle.open(bundle.path).config.confidence is None


@pytest.mark.parametrize(
    ("confidence", "words"),
    [
        (0.7, "'confidence' is not complete"),
        ({"base": 0.1}, "'confidence' is not complete. It has: base"),
        (asdict(SURE) | {"odd_length": 3}, "odd_length is 3. It must be 0 or less"),
        (asdict(SURE) | {"longest": -math.inf}, "longest is -inf"),
    ],
)
def test_a_damaged_confidence_is_refused_with_the_file_that_has_it(bundle: Bundle, confidence: Any, words: str) -> None:
    change(bundle, confidence=confidence)
    with pytest.raises(BundleError, match=words) as caught:
        Bundle.open(bundle.path)
    assert caught.value.where == str(bundle.path / "config.json")


@pytest.mark.parametrize("contents", ["[1]", "{", "7"])
def test_damaged_scores_are_not_written_over(bundle: Bundle, contents: str) -> None:
    (bundle.path / "scores.json").write_text(contents)
    with pytest.raises(BundleError, match="not a model's scores"):
        bundle.calibrated(SURE, {"error": 0.01})
    assert (bundle.path / "scores.json").read_text() == contents
