"""The length penalty that a dev set chooses, and where it is kept."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from transduce.bundle import Bundle, find_model
from transduce.calibration import choose_length_penalty
from transduce.data.builtin import builtin_corpus
from transduce.errors import ConfigError
from transduce.evaluation import quick_bleu
from transduce.training.recipes import find_recipe
from transduce.translator import Translator


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    shutil.copytree(find_model("en-de"), tmp_path / "model")
    return Bundle.open(tmp_path / "model")


@pytest.fixture(scope="module")
def sources() -> list[str]:
    pairs = builtin_corpus("tatoeba-en-de", "dev").pairs()
    return sorted((pair.source for pair in pairs), key=len)[-80:]  # long ones: where a penalty makes a difference


@pytest.mark.parametrize("wanted", [0.6, 1.4])
def test_the_dev_set_chooses(bundle: Bundle, sources: list[str], wanted: float) -> None:
    """Where the references are what the model writes with one penalty, none can be better."""
    before = bundle.scores()
    references = [each.text for each in Translator(bundle).translate(sources, alpha=wanted, guard=False)]
    chosen, bleu = choose_length_penalty(bundle, sources, references)
    assert bleu[wanted] == pytest.approx(100)
    assert min(bleu.values()) < 99
    best = chosen.config.decoding["alpha"]
    assert best == wanted or bleu[best] > 99.5
    assert (best > 0.6) == (wanted > 0.6)

    again = Translator.load(bundle.path)
    assert again.bundle.config.decoding["alpha"] == best
    explicit = Translator.load(find_model("en-de")).translate(sources, alpha=best)
    assert [each.text for each in again.translate(sources)] == [each.text for each in explicit]
    scores = json.loads((bundle.path / "scores.json").read_text())
    assert scores.pop("length_penalty")["bleu"].keys() == {str(alpha) for alpha in bleu}
    assert scores == before


@pytest.mark.parametrize("compiled", [True, False])
def test_each_penalty_has_the_bleu_of_a_search_of_its_own(bundle: Bundle, sources: list[str], compiled: bool) -> None:
    """CTranslate2 searches once for all; PyTorch's search, which a penalty takes part in, is done for each."""
    if not compiled:
        shutil.rmtree(bundle.path / "ctranslate2")
    some, references = sources[::4], [each.text for each in Translator(bundle).translate(sources[::4], beam=8)]
    _, bleu = choose_length_penalty(bundle, some, references)
    translator = Translator(bundle)
    for alpha, value in bleu.items():
        alone = [each.text for each in translator.translate(some, alpha=alpha, guard=False)]
        assert value == pytest.approx(quick_bleu(alone, references))
    assert len(bleu) == 5


def test_a_model_that_has_learned_nothing_is_asked_once(bundle: Bundle, sources: list[str]) -> None:
    chosen, bleu = choose_length_penalty(bundle, sources, ["Unsinn"] * len(sources))
    assert (chosen.config.decoding["alpha"], list(bleu)) == (0.6, [0.6])


def test_recipes_by_size_let_the_dev_set_choose_and_the_papers_do_not() -> None:
    by_size = [(f"{size}-corpus", "auto") for size in ("tiny", "small", "medium", "large")]
    for name, alpha in (*by_size, ("paper-base", 0.6), ("paper-big", 0.6)):
        recipe = find_recipe(name)
        assert recipe.decoding.alpha == alpha
        assert "alpha" not in recipe.decoding.described()["decoding"]
    assert find_recipe("small-corpus").with_overrides(["decoding.alpha=1.2"]).decoding.described()["decoding"] == {
        "alpha": 1.2
    }


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("20", r"^decoding\.alpha=20 cannot work\. .*less than or equal to 10"),
        ("autto", "^decoding.alpha='autto' .*'auto'"),
    ],
)
def test_a_penalty_that_cannot_be_is_refused_in_words(value: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        find_recipe("small-corpus").with_overrides([f"decoding.alpha={value}"])
