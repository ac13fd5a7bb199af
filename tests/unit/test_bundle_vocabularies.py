"""A model directory with a vocabulary for each side, and one with languages to choose from."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch

from transduce.bundle import Bundle, BundleConfig
from transduce.errors import BundleError
from transduce.model import Transformer, TransformerConfig
from transduce.text import Tokenizer, Vocabularies

LINES = [f"{subject} {verb} the {thing}." for subject in ("We", "They", "Kofi and Ama")
         for verb in ("painted", "understand", "repaired") for thing in ("house", "bicycles", "question")]  # fmt: skip


def make_model(vocabularies: Vocabularies) -> Transformer:
    torch.manual_seed(1)
    shape: dict[str, Any] = {"d_model": 16, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1, "heads": 2}
    if not vocabularies.shared:
        shape |= {"target_vocab_size": vocabularies.target.size, "tying": "target"}
    return Transformer(TransformerConfig.tiny(vocabularies.source.size, **shape)).eval()


def write(path: Path, model: Transformer, vocabularies: Vocabularies, **settings: Any) -> Path:
    weights = {name: value.detach() for name, value in model.named_parameters()}
    config = BundleConfig(architecture=asdict(model.config), **settings)
    return Bundle.write(path, config, weights, vocabularies, {}, "").path


def use(path: Path) -> None:
    bundle = Bundle.open(path)
    bundle.vocabularies()
    bundle.model()


def refused(path: Path, match: str) -> None:
    with pytest.raises(BundleError, match=match) as caught:
        use(path)
    assert str(path) in (caught.value.where or "")


def change(path: Path, **values: Any) -> None:
    """Change what config.json says; `...` takes an entry out."""
    config = json.loads((path / "config.json").read_text()) | values
    (path / "config.json").write_text(json.dumps({name: value for name, value in config.items() if value is not ...}))


@pytest.fixture(scope="module")
def vocabularies() -> Vocabularies:
    """A source and a target one, with tags for two languages."""
    pairs = [(line, line.upper()) for line in LINES]
    return Vocabularies.learn(pairs, 300, shared=False, languages=["de", "fr"])


@pytest.fixture(scope="module")
def shared() -> Vocabularies:
    tokenizer = Tokenizer.learn(LINES, 300)
    return Vocabularies(tokenizer, tokenizer)


@pytest.fixture
def path(tmp_path: Path, vocabularies: Vocabularies) -> Path:
    languages = {"target_language": "de", "target_languages": ["de", "fr"]}
    return write(tmp_path / "model", make_model(vocabularies), vocabularies, **languages)


def test_vocabularies_of_each_side_are_files_of_their_own(path: Path, vocabularies: Vocabularies) -> None:
    assert {file.name for file in path.glob("*.model")} == {"source.model", "target.model"}
    bundle, model = Bundle.open(path), make_model(vocabularies)
    assert bundle.vocabularies().files() == vocabularies.files()
    assert bundle.config.target_languages == ["de", "fr"]
    source, target = torch.randint(4, vocabularies.source.size, (3, 7)), torch.randint(4, 290, (3, 5))
    assert torch.equal(bundle.model()(source, target), model(source, target))


@pytest.mark.parametrize("name", ["source.model", "target.model"])
def test_a_missing_or_foreign_vocabulary_of_a_side_is_named(path: Path, name: str) -> None:
    (path / name).write_bytes(Tokenizer.learn(LINES, 290, tags=["<2de>", "<2fr>"]).model)
    refused(path, rf"{name}: the tokenizer has 290 pieces, the model 3")
    (path / name).write_bytes(b"junk")
    refused(path, rf"{name}: .*damaged")
    (path / name).unlink()
    refused(path, rf"incomplete: {name} is missing")


def test_a_model_of_the_other_kind_leaves_no_vocabulary_behind(
    path: Path, vocabularies: Vocabularies, shared: Vocabularies
) -> None:
    write(path, make_model(shared), shared)
    assert {file.name for file in path.glob("*.model")} == {"tokenizer.model"}
    use(path)
    write(path, make_model(vocabularies), vocabularies)
    assert {file.name for file in path.glob("*.model")} == {"source.model", "target.model"}
    use(path)


def test_a_language_without_a_tag_is_refused(path: Path) -> None:
    change(path, target_languages=["de", "fr", "twi"])
    refused(path, "no tag '<2twi>'")


@pytest.mark.parametrize("languages", ["de", [1], None, {"de": 1}], ids=str)
def test_languages_must_be_a_list_of_names(path: Path, languages: Any) -> None:
    change(path, target_languages=languages)
    refused(path, r"config\.json: its 'target_languages' is not a list of languages")


def test_a_description_from_before_there_were_languages_to_choose_is_read(path: Path) -> None:
    change(path, target_languages=...)
    use(path)
    assert Bundle.open(path).config.target_languages == []
