"""A model of the other direction has a say in which hypothesis is taken; with the models that come along."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from transduce.bundle import Bundle, BundleConfig
from transduce.data.builtin import builtin_corpus
from transduce.errors import ConfigError
from transduce.evaluation import evaluate
from transduce.model import Transformer, TransformerConfig
from transduce.ranking import WAY_BACK_WEIGHT
from transduce.text import Vocabularies
from transduce.translator import Translator

SOURCES = [
    "My sister works in a hospital and my brother is a teacher at the same school that we went to.",
    "I told him that I had no time, but he did not want to wait until the others were back.",
    "The old man who lives next door gave me the keys of his car before he left.",
    "If you had asked me yesterday, I would have said that it was impossible.",
    "Where is the station?",
]
PLAIN = {"guard": False, "beam": 6}


@pytest.fixture(scope="module")
def back() -> Translator:
    return Translator.load("de-en")


@pytest.fixture(scope="module")
def both() -> Translator:
    return Translator.load("en-de", back="de-en")


def test_it_is_the_best_by_its_own_score_and_by_the_way_back(both: Translator, back: Translator) -> None:
    """As the equation says, written out here; the way back by PyTorch, of one sentence at a time."""
    ways = Translator.load("en-de").translate(SOURCES, n_best=6, **PLAIN)
    chosen = both.translate(SOURCES, **PLAIN)
    for source, one, other in zip(SOURCES, ways, chosen, strict=True):
        totals = {}
        for each in one.alternatives:
            scored = back.score(each.text, source)
            totals[each.text] = each.score + WAY_BACK_WEIGHT * scored.log_probability / len(scored.tokens)
        # Eight bits and 32 do not give the same digits: what is as good as the best counts as the best.
        assert totals[other.text] == pytest.approx(max(totals.values()), abs=0.05)
        assert other.score == next(each.score for each in one.alternatives if each.text == other.text)
    assert [each.text for each in chosen] != [each.text for each in ways]  # it does make a difference


def test_of_all_hypotheses_the_best_come_first_and_none_is_lost(both: Translator) -> None:
    plain = Translator.load("en-de").translate(SOURCES[0], n_best=6, **PLAIN)
    ranked = both.translate(SOURCES[0], n_best=6, **PLAIN)
    assert sorted(each.text for each in ranked.alternatives) == sorted(each.text for each in plain.alternatives)
    assert ranked.alternatives[0].text == both.translate(SOURCES[0], **PLAIN).text


def test_translations_get_better(both: Translator) -> None:
    """Of longer sentences of Tatoeba that neither model has learned from, where something can be left out."""
    pairs = [pair for pair in builtin_corpus("tatoeba-en-de", "test").pairs() if len(pair.source.split()) >= 12][:150]
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    scores = []
    for translator in (Translator.load("en-de"), both):
        texts = [each.text for each in translator.translate(sources, beam=8)]
        scores.append(evaluate(texts, references, metrics=("chrf",), intervals=False).chrf)
    assert scores[1] > scores[0]


def test_numbers_and_addresses_are_kept_as_without_it(both: Translator) -> None:
    text = both.translate("See https://example.org/a?b=1 for the 27 rules, or write to a@b.org.").text
    assert "https://example.org/a?b=1" in text
    assert "27" in text
    assert "a@b.org" in text


def test_the_lens_shows_what_was_chosen(both: Translator) -> None:
    for source in SOURCES[:2]:
        maps = both.attention(source, beam=6)
        assert maps.text == both.translate(source, **PLAIN).text


def test_what_cannot_lead_back_is_refused(both: Translator) -> None:
    with pytest.raises(ConfigError, match="does not lead back: it translates from en into fr") as refused:
        Translator.load("en-de", back="en-fr")
    assert refused.value.where is not None
    assert refused.value.where.endswith("en-fr")
    with pytest.raises(ConfigError, match=r"several hypotheses.*beam=4"):
        both.translate("We", beam=1)
    with pytest.raises(ConfigError, match="Leave out one of them"):
        both.translate("We", mbr=True)


def test_the_command_needs_no_pytorch_for_it() -> None:
    program = (
        "import sys; from transduce.cli.main import main; sys.argv = ['transduce', 'translate', '--json', '--back',"
        f" 'de-en', {SOURCES[0]!r}]\n"
        "try:\n    main()\nfinally:\n    sys.stderr.write('torch' if 'torch' in sys.modules else 'light')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert done.stderr == "light"
    assert json.loads(done.stdout)["translation"] == Translator.load("en-de", back="de-en").translate(SOURCES[0]).text


def test_evaluate_measures_it(both: Translator, tmp_path: Path) -> None:
    pairs = [pair for pair in builtin_corpus("tatoeba-en-de", "test").pairs() if len(pair.source.split()) >= 12][:20]
    for name, lines in (("en", [pair.source for pair in pairs]), ("de", [pair.target for pair in pairs])):
        (tmp_path / f"test.{name}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    files = [str(tmp_path / "test.en"), str(tmp_path / "test.de")]
    command = [sys.executable, "-m", "transduce", "evaluate", "en-de", *files, "--json", "--back", "de-en"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True)
    texts = [each.text for each in both.translate([pair.source for pair in pairs])]
    measured = evaluate(texts, [pair.target for pair in pairs], intervals=False)
    assert json.loads(done.stdout)["bleu"] == pytest.approx(measured.bleu)


def test_a_folder_is_written_with_it_by_several_workers(both: Translator, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("".join(f"{source}\n" for source in SOURCES), encoding="utf-8")
    command = [sys.executable, "-m", "transduce", "translate", "-i", str(tmp_path / "in.txt"), "-o", f"{tmp_path}/out/"]
    refused = subprocess.run([*command, "--back", "en-fr"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "does not lead back" in " ".join(refused.stderr.split())
    assert not (tmp_path / "out").exists()
    subprocess.run([*command, "--back", "de-en", "--workers", "2"], check=True, capture_output=True)
    written = (tmp_path / "out" / "translations.txt").read_text(encoding="utf-8").splitlines()
    assert written == [each.text for each in both.translate(SOURCES)]
    another = subprocess.run(command, capture_output=True, text=True, check=False)
    assert another.returncode == 2
    assert "begun with another back: de-en" in " ".join(another.stderr.split())


def test_it_leads_back_from_the_language_that_is_written(both: Translator, tmp_path: Path) -> None:
    """A model of two languages: the way back is of one of them."""
    pairs = [(source, source.upper()) for source in SOURCES] * 20
    vocabularies = Vocabularies.learn(pairs, 320, shared=True, languages=["de", "fr"])
    model = Transformer(TransformerConfig.tiny(vocabularies.source.size, d_model=16, d_ff=32, heads=2))
    weights = {name: value.detach() for name, value in model.named_parameters()}
    config = BundleConfig(
        architecture=asdict(model.config), source_language="en", target_language="de", target_languages=["de", "fr"]
    )
    bundle = Bundle.write(tmp_path / "two", config, weights, vocabularies, {}, "")
    translator = Translator(bundle, back=both.back)
    assert translator.translate("We", "de", guard=False, max_length_extra=3).alternatives
    with pytest.raises(ConfigError, match="it translates from de into en, and two from en into fr"):
        translator.translate("We", "fr")
    assert translator.translate("We", "fr", guard=False, back=False, max_length_extra=3).alternatives
