"""Pairs in another form: what is changed in the source is changed in the target."""

from __future__ import annotations

from pathlib import Path

import pytest

from transduce.data.corpus import Corpus, Pair
from transduce.data.lexicon import learn_lexicon
from transduce.data.prepare import Preparation, prepare
from transduce.data.variants import Variants
from transduce.text.slots import SLOT_SYMBOLS

NOUNS = {"house": "Haus", "river": "Fluss", "question": "Frage", "bicycle": "Fahrrad"}
NAMES = ["Kofi", "Ama", "Yaw"]
PAIRS = [
    Pair(f"{name} sees the {noun} at {hour}.", f"Um {hour} sieht {name}: {translation}.")
    for name in NAMES
    for noun, translation in NOUNS.items()
    for hour in (7, 12)
]


def slots(text: str) -> list[str]:
    return sorted(symbol for symbol in SLOT_SYMBOLS for _ in range(text.count(symbol)))


def test_words_that_prefer_each_other_are_in_the_lexicon() -> None:
    lexicon = learn_lexicon(PAIRS)
    assert {noun: lexicon.get(noun) for noun in NOUNS} == {noun: word.lower() for noun, word in NOUNS.items()}
    assert lexicon["kofi"] == "kofi"


def test_words_that_are_seldom_seen_are_not() -> None:
    assert learn_lexicon([Pair("a lonely word", "ein einsames Wort")] * 4) == {}


def test_of_words_that_are_equally_liked_it_takes_the_same_in_every_process() -> None:
    always = [f"always{number}" for number in range(20)]
    assert learn_lexicon([Pair(" ".join(always), " ".join(always))] * 5) == {"always0": "always0"}


@pytest.fixture
def variants() -> list[Pair]:
    return list(Variants(1.0, learn_lexicon(PAIRS)).of(PAIRS * 40))


def test_the_same_slots_stand_on_both_sides_once_each(variants: list[Pair]) -> None:
    slotted = [pair for pair in variants if slots(pair.source)]
    assert len(slotted) > 100
    for source, target in slotted:
        assert slots(source) == slots(target)
        assert len(set(slots(source))) == len(slots(source)) <= 3
    assert {symbol for pair in slotted for symbol in slots(pair.source)} == set(SLOT_SYMBOLS)


def test_a_slot_stands_for_a_word_and_its_translation(variants: list[Pair]) -> None:
    for source, target in variants:
        if slots(source) and "7" in source:
            missing_noun = not any(noun in source for noun in NOUNS)
            assert missing_noun == (not any(word in target for word in NOUNS.values()))


def test_joined_pairs_are_whole_ones_in_the_same_order(variants: list[Pair]) -> None:
    translation = dict(PAIRS)
    joined = [pair for pair in variants if pair.source.count(".") > 1]
    assert {pair.source.count(".") for pair in joined} == {2, 3}
    for source, target in joined:
        parts = [f"{part.strip()}." for part in source.split(".")[:-1]]
        assert target == " ".join(translation[part] for part in parts)


def test_missing_marks_are_on_both_sides(variants: list[Pair]) -> None:
    unmarked = [pair for pair in variants if not pair.source.endswith(".")]
    lowered = [pair for pair in variants if pair.source.islower() and not slots(pair.source)]
    assert min(map(len, (unmarked, lowered))) > 20
    assert not any(target.endswith(".") for _, target in unmarked)
    assert {target for _, target in lowered} <= {pair.target for pair in PAIRS}


def test_a_share_of_the_pairs_the_same_each_time() -> None:
    lexicon = learn_lexicon(PAIRS)
    once, again = (list(Variants(0.25, lexicon).of(PAIRS * 100)) for _ in range(2))
    assert once == again
    assert 0.2 * 2400 < len(once) < 0.26 * 2400
    assert list(Variants(0.0, lexicon).of(PAIRS)) == []


def test_without_slots_in_the_vocabulary_none_are_made() -> None:
    assert not any(slots(pair.source) for pair in Variants(1.0, None).of(PAIRS * 40))


def test_prepared_variants_come_beside_the_pairs_and_not_into_the_dev_set(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path / "train.en", tmp_path / "train.de")
    for side, path in enumerate((corpus.source, corpus.target)):
        assert path is not None
        path.write_text("".join(f"{pair[side]}\n" for pair in PAIRS), encoding="utf-8")
    plain = prepare(Preparation([corpus], vocab_size=360), tmp_path / "plain")
    varied = prepare(Preparation([corpus], vocab_size=360, variants=1.0), tmp_path / "varied")
    assert plain.vocabularies.source.slots == []
    assert varied.vocabularies.source.slots == list(SLOT_SYMBOLS)
    assert len(varied.train) > 1.5 * len(plain.train)
    assert varied.dev_sources == plain.dev_sources
    tokenizer = varied.vocabularies.source
    assert len(tokenizer.encode("⟦3⟧")) == 2  # the space before it, and itself
    assert tokenizer.decode(tokenizer.encode("see ⟦3⟧, ⟦1⟧.")) == "see ⟦3⟧, ⟦1⟧."
