"""Whatever a model writes: nothing is lost, nothing loops, nothing runs away."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.bundle import Bundle, BundleConfig
from transduce.decoding import DecodingOptions, Hypothesis
from transduce.engines.engine import Engine
from transduce.model import Transformer, TransformerConfig
from transduce.text import Tokenizer, Vocabularies
from transduce.text.slots import SLOT_SYMBOLS
from transduce.translator import Glossary, Translator

LINES = [f"{subject} {verb} the {thing}." for subject in ("We", "They", "Kofi and Ama")
         for verb in ("painted", "understand", "repaired") for thing in ("house", "bicycles", "question")]  # fmt: skip
WORDS = ["We", "painted", "the", "house", "bicycles", "Kofi", "and", "understand", "question", "repaired"]
KEPT = [
    "https://example.com/a?b=1", "tom@example.org", "{name}", "%s", "%(n)d", "${x}", "{{y}}", "<b>", "</b>", "&nbsp;",
    "😀", "❤️", "⟦1⟧", "⟦7⟧", "<keep>We painted</keep>",
]  # fmt: skip
NUMBERS = ["7", "1,000", "2:30", "1984", "3.14", "3rd"]
EOS = 2


@pytest.fixture(scope="module", params=["slots", "no slots"])
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    protected = SLOT_SYMBOLS if request.param == "slots" else ()
    tokenizer = Tokenizer.learn(LINES, 320, protected=protected)
    torch.manual_seed(5)
    shape = {"d_model": 16, "d_ff": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "tying": "none"}
    model = Transformer(TransformerConfig.tiny(tokenizer.size, **shape))
    weights = {name: value.detach() for name, value in model.named_parameters()}
    config = BundleConfig(architecture=asdict(model.config), source_language="en", target_language="xx")
    vocabularies = Vocabularies(tokenizer, tokenizer)
    return Bundle.write(tmp_path_factory.mktemp("models") / "random", config, weights, vocabularies, {}, "").path


@pytest.fixture(scope="module")
def nonsense(path: Path) -> Translator:
    return Translator.load(path)


class Scribe(Engine):
    """An engine that writes what a function makes of a text, and notes what it was asked."""

    def __init__(self, tokenizer: Tokenizer, write: Callable[[str, DecodingOptions], list[str]]) -> None:
        self._tokenizer, self._write = tokenizer, write
        self.asked: list[tuple[list[str], DecodingOptions]] = []

    def decode(self, sources: Sequence[Sequence[int]], options: DecodingOptions) -> list[list[Hypothesis]]:
        texts = [self._tokenizer.decode(source) for source in sources]
        self.asked.append((texts, options))
        return [
            [Hypothesis([*self._tokenizer.encode(each), EOS], -1.0, -1.0, []) for each in self._write(text, options)]
            for text in texts
        ]


class Nonsense(Engine):
    """A bad model: random tokens, loops, nothing at all, or what it read with some of it left out."""

    def __init__(self, tokenizer: Tokenizer, seed: int) -> None:
        self._tokenizer, self._draw = tokenizer, random.Random(seed)

    def decode(self, sources: Sequence[Sequence[int]], options: DecodingOptions) -> list[list[Hypothesis]]:
        found = [[self._written(source, options) for _ in range(options.n_best)] for source in sources]
        return [[Hypothesis([*tokens, EOS], -1.0, -1.0, []) for tokens in each] for each in found]

    def _written(self, source: Sequence[int], options: DecodingOptions) -> list[int]:
        draw, most = self._draw, options.max_length(len(source) + 1) - 1
        ids = range(4, self._tokenizer.size)
        way = draw.randrange(5)
        if way == 0:
            return []
        if way == 1:
            return draw.choices(ids, k=draw.randint(1, most))
        if way == 2:
            return (draw.choices(ids, k=draw.randint(1, 4)) * most)[:most]
        if way == 3:
            return [token for token in source if draw.random() < 0.7]
        return [*source, *draw.choices(ids, k=3)][:most]


def translator_of(path: Path, write: Callable[[str, DecodingOptions], list[str]]) -> tuple[Translator, Scribe]:
    translator = Translator.load(path)
    scribe = Scribe(translator.vocabularies.target, write)
    translator.engine = scribe  # type: ignore[assignment]
    return translator, scribe


def runs(text: str) -> int:
    """How often the same word comes at once."""
    words = re.findall(r"\w+", text.casefold())
    most = run = 1
    for one, other in pairwise(words):
        run = run + 1 if one == other else 1
        most = max(most, run)
    return most


pieces = st.one_of(st.sampled_from(WORDS), st.sampled_from(KEPT), st.sampled_from(NUMBERS))


@settings(max_examples=80)
@given(st.lists(pieces, max_size=14), st.integers(0, 10_000))
def test_everything_survives_whatever_the_model_writes(nonsense: Translator, text: list[str], seed: int) -> None:
    nonsense.engine = Nonsense(nonsense.vocabularies.target, seed)  # type: ignore[assignment]
    source = " ".join(text)
    found = nonsense.translate(source).text
    digits = [re.sub(r"\D", "", number) for number in re.findall(r"\d[\d.,:]*", found)]
    for kept, count in Counter(text).items():
        if kept in KEPT:
            assert found.count(re.sub("</?keep>", "", kept)) >= count, kept
        elif kept in NUMBERS:
            assert digits.count(re.sub(r"\D", "", kept)) >= count, kept
    assert "<keep>" not in found
    assert runs(found) <= max(3, runs(source))
    tokenizer = nonsense.vocabularies.target
    assert len(tokenizer.encode(found)) <= 3 * len(tokenizer.encode(source)) + 20


@settings(max_examples=80)
@given(st.lists(pieces, max_size=8), st.sampled_from([" ", "  ", "\n"]))
def test_a_model_that_says_what_it_hears_gives_the_text_back(nonsense: Translator, text: list[str], space: str) -> None:
    nonsense.engine = Scribe(nonsense.vocabularies.target, lambda heard, options: [heard] * options.n_best)  # type: ignore[assignment]
    source = space.join(text)
    found = nonsense.translate(source)
    assert found.text.split() == re.sub("</?keep>", "", source).split()
    assert all(flag.code != "lost" for flag in found.warnings)


def test_what_is_good_is_decoded_once(path: Path) -> None:
    translator, scribe = translator_of(path, lambda heard, options: [heard])
    found = translator.translate(["We painted the house.", "They understand 7."])
    assert [each.text for each in found] == ["We painted the house.", "They understand 7."]
    assert len(scribe.asked) == 1
    assert all(each.redone == 0 and not each.warnings for each in found)


def test_a_loop_is_decoded_again_and_only_it(path: Path) -> None:
    def write(heard: str, options: DecodingOptions) -> list[str]:
        loops = "We" in heard and not options.no_repeat_ngram
        return ["the house " * 5 if loops else "They painted."] * options.n_best

    translator, scribe = translator_of(path, write)
    found = translator.translate(["We painted the house.", "They understand."])
    assert [each.text for each in found] == ["They painted."] * 2
    assert [each.redone for each in found] == [1, 0]
    assert not found[0].warnings
    assert [texts for texts, _ in scribe.asked] == [
        ["We painted the house.", "They understand."],
        ["We painted the house."],
    ]


def test_a_loop_that_stays_is_cut_and_flagged(path: Path) -> None:
    translator, _ = translator_of(path, lambda heard, options: ["house house house house house"] * options.n_best)
    found = translator.translate("We painted.")
    assert found.text == "house house house"
    assert [flag.code for flag in found.warnings] == ["repetition"]


def test_what_the_source_repeats_may_be_repeated(path: Path) -> None:
    translator, scribe = translator_of(path, lambda heard, options: [heard])
    assert translator.translate("house house house house house").text == "house house house house house"
    assert len(scribe.asked) == 1


def test_nothing_is_answered_with_the_text_itself(path: Path) -> None:
    translator, _ = translator_of(path, lambda heard, options: [""] * options.n_best)
    found = translator.translate("We painted.")
    assert found.text == "We painted."
    assert [flag.code for flag in found.warnings] == ["untranslated"]


def test_text_without_words_or_of_unknown_letters_is_copied(path: Path) -> None:
    translator, scribe = translator_of(path, lambda heard, options: ["house"])
    for text in ("?!", "😀 https://example.com", "<b></b>", " … "):
        found = translator.translate(text)
        assert (found.text, found.warnings) == (text, [])
    found = translator.translate("Где станция")
    assert (found.text, [flag.code for flag in found.warnings]) == ("Где станция", ["untranslated"])
    assert not any(texts for texts, _ in scribe.asked)


def test_a_lost_number_is_decoded_again(path: Path) -> None:
    def write(heard: str, options: DecodingOptions) -> list[str]:
        slots = re.findall("⟦.⟧", heard)
        return ["We seven"] if options.n_best == 1 else ["We seven", f"We {slots[0] if slots else '7'}"]

    translator, scribe = translator_of(path, write)
    found = translator.translate("We painted 7")
    assert (found.text, found.warnings, found.redone) == ("We 7", [], 1)
    assert ("⟦" in scribe.asked[1][0][0]) is bool(translator.vocabularies.source.slots)


def test_a_lost_address_is_put_between_the_pieces(path: Path) -> None:
    translator, scribe = translator_of(
        path, lambda heard, options: [re.sub(r"⟦.⟧|http\S+", "", heard)] * options.n_best
    )
    found = translator.translate("We painted  https://example.com the house.")
    assert found.text == "We painted  https://example.com the house."
    assert [flag.code for flag in found.warnings] == ["pieces"]
    assert scribe.asked[-1][0] == ["We painted", "the house."]


def test_what_is_around_a_sentence_is_not_shown_to_the_model(path: Path) -> None:
    translator, scribe = translator_of(path, lambda heard, options: [heard.upper()])
    assert translator.translate("- <b>We painted</b> 😀").text == "- <b>WE PAINTED</b> 😀"
    assert scribe.asked[0][0] == ["We painted"]


def test_marks_hold_across_sentences_and_lines(path: Path) -> None:
    long = "We painted the house. " * 10
    translator, _ = translator_of(path, lambda heard, options: [re.sub(r"⟦.⟧|Kofi.*Ama\.", "", heard)] * options.n_best)
    assert "Kofi. They. \n Ama." in translator.translate(f"{long}<keep>Kofi. They. \n Ama.</keep> {long}").text


def test_a_stray_slot_is_not_shown(path: Path) -> None:
    translator, _ = translator_of(path, lambda heard, options: ["We ⟦3⟧ painted"] * options.n_best)
    assert translator.translate("We painted").text == "We painted"


def test_without_guards_the_model_has_its_way(path: Path) -> None:
    translator, scribe = translator_of(path, lambda heard, options: ["house house house house house"])
    found = translator.translate("We <b>painted</b> 7", guard=False)
    assert (found.text, found.warnings) == ("house house house house house", [])
    assert scribe.asked[0][0] == ["We <b>painted</b> 7"]


def test_a_given_beginning_is_kept_and_what_is_lost_is_said(path: Path) -> None:
    translator, scribe = translator_of(path, lambda heard, options: ["house"] * options.n_best)
    found = translator.translate("We painted 7 https://example.com", prefix="house")
    assert found.text == "house"
    assert [flag.code for flag in found.warnings] == ["lost", "lost"]
    assert len(scribe.asked) == 1


# Glossary


def test_a_term_that_is_there_costs_nothing(path: Path) -> None:
    translator, scribe = translator_of(path, lambda heard, options: ["They HAUS"])
    found = translator.translate("They painted the house", glossary={"house": "Haus"})
    assert (found.text, len(scribe.asked)) == ("They HAUS", 1)


def test_a_term_that_is_not_there_is_put_in(path: Path) -> None:
    def write(heard: str, options: DecodingOptions) -> list[str]:
        return [heard.replace("house", "question").replace("House", "question")] * options.n_best

    translator, _ = translator_of(path, write)
    glossary = Glossary({"house": "villa", "Kofi": "Kofi"})
    assert translator.translate("They painted the house", glossary=glossary).text == "They painted the villa"
    assert translator.translate("They painted the HOUSE", glossary=glossary).text == "They painted the VILLA"
    assert translator.translate(["We", "Kofi"], glossary=glossary)[1].text == "Kofi"


def test_a_term_at_the_start_is_capitalised(path: Path) -> None:
    translator, _ = translator_of(path, lambda heard, options: [heard.replace("House", "We")] * options.n_best)
    found = translator.translate("House painted", glossary={"house": "villa"}).text
    assert found == "Villa painted"


def test_a_term_that_a_given_beginning_leaves_no_room_for_is_flagged(path: Path) -> None:
    translator, _ = translator_of(path, lambda heard, options: ["question"] * options.n_best)
    found = translator.translate("They painted the house", prefix="question", glossary={"house": "villa"})
    assert [(flag.code, "“villa”" in flag.message) for flag in found.warnings] == [("glossary", True)]
