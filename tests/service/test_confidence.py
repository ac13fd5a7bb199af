"""Answers of a calibrated model say how far they can be trusted; others are as they were."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from transduce import Translator
from transduce.bundle import Bundle, find_model
from transduce.confidence import Confidence

TEXTS = ["Where is the station?", "", "My sister works in a hospital."]
ASKED = {"source": "en", "target": "de"}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The built-in model with a confidence, and without."""
    folder = tmp_path_factory.mktemp("models")
    calibrated, plain = (Path(shutil.copytree(find_model("en-de"), folder / name)) for name in ("sure", "plain"))
    config = json.loads((plain / "config.json").read_text(encoding="utf-8"))
    (plain / "config.json").write_text(json.dumps(config | {"confidence": None}), encoding="utf-8")
    weights = {"token_probability": 0.7, "sentence_probability": 0.2, "length": 0.01, "odd_length": -0.1}
    confidence = Confidence(base=0.05, **weights, usual_ratio=0.0, shortest=2, longest=40)  # type: ignore[arg-type]
    Bundle.open(calibrated).calibrated(confidence, {"error": 0.01})
    return calibrated, plain


@pytest.fixture(scope="module")
def sure(serve: Any, models: tuple[Path, Path]) -> Iterator[Any]:
    with serve(*models, "--requests-per-minute", "0") as running:
        yield running


def test_our_own_api(sure: Any, models: tuple[Path, Path]) -> None:
    answer = sure.post("/v1/translate", {"q": TEXTS, "model": "sure", "n_best": 2})[1]
    expected = Translator.load(models[0]).translate(TEXTS, n_best=2)
    for found, wanted in zip(answer["translations"], expected, strict=True):
        assert found["confidence"] == pytest.approx(wanted.confidence, abs=1e-3)
        ways = [each["confidence"] for each in found["alternatives"]]
        assert ways == pytest.approx([each.confidence for each in wanted.alternatives], abs=1e-3)
    assert answer["translations"][1]["confidence"] is None  # nothing was translated
    plain = sure.post("/v1/translate", {"q": TEXTS[0], "model": "plain"})[1]["translations"][0]
    assert plain["confidence"] is None


def test_libretranslates(sure: Any, serve: Any, models: tuple[Path, Path]) -> None:
    first, _, last = (each.confidence for each in Translator.load(models[0]).translate(TEXTS))
    one = sure.post("/translate", {"q": TEXTS[0], **ASKED})[1]
    assert one["confidence"] == pytest.approx(first, abs=1e-3)
    several = sure.post("/translate", {"q": TEXTS, **ASKED})[1]
    assert several["confidence"] == [pytest.approx(first, abs=1e-3), None, pytest.approx(last, abs=1e-3)]
    with serve(models[1]) as service:
        assert list(service.post("/translate", {"q": TEXTS[0], **ASKED})[1]) == ["translatedText"]


def test_a_page_of_html_has_that_of_its_texts_by_length(sure: Any, models: tuple[Path, Path]) -> None:
    one, other = Translator.load(models[0]).translate([TEXTS[0], TEXTS[2]])
    page = sure.post("/translate", {"q": f"<p>{TEXTS[0]}</p><p>{TEXTS[2]}</p>", "format": "html", **ASKED})[1]
    lengths = len(one.text), len(other.text)
    mean = ((one.confidence or 0) * lengths[0] + (other.confidence or 0) * lengths[1]) / sum(lengths)
    assert page["confidence"] == pytest.approx(mean, abs=1e-3)
