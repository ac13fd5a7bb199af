"""Several corpora become one: cleaned, deduplicated and measured together, each with its weight and its language."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from transduce.data import prepare as module
from transduce.data.builtin import builtin_corpus
from transduce.data.corpus import Corpus
from transduce.data.holdout import source_key
from transduce.data.prepare import Preparation, Prepared, prepare
from transduce.data.shards import Pairs, Span
from transduce.errors import ConfigError, InputError
from transduce.text import Direction

SOURCES = [f"{subject} {verb} the {thing}{mark}"
           for subject in ("We", "They", "Kofi", "Ama", "Nobody") for verb in ("paint", "see", "repair", "find")
           for thing in ("house", "bicycle", "question", "river") for mark in (".", "!", "?")]  # fmt: skip

Write = Callable[..., Corpus]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """A corpus whose targets are the sources' words backwards, marked with its language."""

    def write(name: str, sources: list[str], language: str = "xx", weight: float = 1.0) -> Corpus:
        targets = [f"{language} {' '.join(reversed(source.split()))}" for source in sources]
        paths = tmp_path / f"{name}.en", tmp_path / f"{name}.{language}"
        for path, lines in zip(paths, (sources, targets), strict=True):
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return Corpus(*paths, weight)

    return write


def texts(prepared: Prepared, pairs: Pairs, side: str) -> list[str]:
    tokenizer = getattr(prepared.vocabularies, side)
    return [tokenizer.decode(pairs.ids(side, index).tolist()) for index in range(len(pairs))]


def first_pieces(prepared: Prepared, pairs: Pairs) -> list[str]:
    return prepared.vocabularies.source.pieces([int(pairs.ids("source", index)[0]) for index in range(len(pairs))])


# Corpora


def test_pairs_are_counted_and_cleaned_over_all_corpora(write: Write, tmp_path: Path) -> None:
    first = write("first", [*SOURCES[:100], "", SOURCES[0]])
    second = write("second", [*SOURCES[90:160], "b " * 300])
    prepared = prepare(Preparation([first, second], vocab_size=320), tmp_path / "out")
    expected = {"read": 173, "kept": 160, "empty": 1, "too_long": 1, "ratio": 0, "duplicate": 11}
    assert prepared.counts == expected
    assert len(prepared.train) + len(prepared.dev) == 160
    kept = texts(prepared, prepared.train, "source") + prepared.dev_sources
    assert sorted(kept) == sorted(SOURCES[:160])


def test_each_corpus_is_a_span_with_its_weight(write: Write, tmp_path: Path) -> None:
    corpora = [write("a", SOURCES[:100]), write("b", SOURCES[100:130], weight=3), write("c", SOURCES[130:], weight=0.5)]
    prepared = prepare(Preparation(corpora, vocab_size=320), tmp_path / "out")
    spans = prepared.train.spans
    assert [span.weight for span in spans] == [1.0, 3.0, 0.5]
    assert spans[-1].end == len(prepared.train)
    sources = texts(prepared, prepared.train, "source")
    for span, expected in zip(spans, (SOURCES[:100], SOURCES[100:130], SOURCES[130:]), strict=True):
        held_out = [source for source in expected if source in prepared.dev_sources]
        assert sources[span.start : span.end] == [source for source in expected if source not in held_out]
    assert all(span.weight == 1 for span in prepared.dev.spans)


def test_a_corpus_of_which_nothing_is_left_has_no_pairs(write: Write, tmp_path: Path) -> None:
    corpora = [
        write("a", SOURCES),
        write("again", SOURCES[:50], weight=5),
        write("b", ["A new river?", "A dry river."]),
    ]
    prepared = prepare(Preparation(corpora, dev=[write("dev", ["It is."])], vocab_size=320), tmp_path / "out")
    assert [span for span in prepared.train.spans if span.start < span.end] == [Span(0, 240, 1.0), Span(240, 242, 1.0)]


def test_a_source_held_out_of_one_corpus_is_not_trained_on_through_another(write: Write, tmp_path: Path) -> None:
    shouted = [f" {source.upper()} " for source in SOURCES]
    corpora = [write("plain", SOURCES, "xx"), write("shouted", shouted, "yy"), write("again", SOURCES, "zz")]
    prepared = prepare(Preparation(corpora, vocab_size=400), tmp_path / "out")
    train = {source_key(text) for text in texts(prepared, prepared.train, "source")}
    dev = {source_key(text) for text in prepared.dev_sources}
    assert not train & dev
    assert train | dev == {source_key(source) for source in SOURCES}
    assert len(prepared.dev) == 3 * len(dev)  # of each corpus its own translation


def test_other_weights_or_languages_are_prepared_anew(write: Write, tmp_path: Path) -> None:
    corpora = [write("a", SOURCES[:120]), write("b", SOURCES[120:])]

    def stages(corpora: list[Corpus], **settings: bool) -> list[str]:
        done: list[str] = []
        preparation = Preparation(corpora, vocab_size=320, **settings)  # type: ignore[arg-type]
        prepare(preparation, tmp_path / "out", lambda stage, _: done.append(stage))
        return done

    assert stages(corpora) != []
    assert stages(corpora) == []
    heavier = [corpora[0], replace(corpora[1], weight=2.0)]
    assert stages(heavier) != []
    assert stages(heavier) == []
    assert stages(heavier[::-1]) != []
    other = [replace(corpus, languages=Direction("en", "yy")) for corpus in corpora]
    assert stages(corpora, language_tags=True) != []
    assert stages(other, language_tags=True) != []


def test_a_given_dev_set_is_not_trained_on_through_any_of_several_corpora(write: Write, tmp_path: Path) -> None:
    dev = write("dev", [SOURCES[3].upper(), SOURCES[200], "Something else."], "yy")
    corpora = [write("a", SOURCES[:120]), write("b", SOURCES[120:])]
    prepared = prepare(Preparation(corpora, dev=[dev], vocab_size=320), tmp_path / "out")
    assert texts(prepared, prepared.train, "source") == [*SOURCES[:3], *SOURCES[4:200], *SOURCES[201:]]
    assert prepared.dev_sources == [SOURCES[3].upper(), SOURCES[200], "Something else."]
    assert prepared.counts["in_a_dev_set"] == 2


def test_a_single_corpus_and_its_dev_set_are_taken_as_they_are(write: Write, tmp_path: Path) -> None:
    preparation = Preparation([write("a", SOURCES)], dev=[write("dev", SOURCES[:5])], vocab_size=320)
    prepared = prepare(preparation, tmp_path / "out")
    assert len(prepared.train) == 240
    assert "in_a_dev_set" not in prepared.counts


def test_no_corpus_and_nothing_usable_are_named(write: Write, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no corpus to learn from"):
        Preparation([])
    hollow = [write("a", ["", " "]), write("b", [""])]
    with pytest.raises(InputError, match=r"^a\.en \+ a\.xx, b\.en \+ b\.xx: no usable pair.*dropped 3 empty"):
        prepare(Preparation(hollow, vocab_size=320), tmp_path / "out")


# Vocabularies


def test_each_side_may_have_a_vocabulary_of_its_own(write: Write, tmp_path: Path) -> None:
    prepared = prepare(Preparation([write("a", SOURCES, "qqq")], vocab_size=300, shared=False), tmp_path / "out")
    vocabularies = prepared.vocabularies
    assert not vocabularies.shared
    assert "▁qqq" in vocabularies.target.all_pieces()
    assert "▁qqq" not in vocabularies.source.all_pieces()
    assert sorted(path.name for path in (tmp_path / "out").glob("*.model")) == ["source.model", "target.model"]
    assert set(texts(prepared, prepared.train, "source")) <= set(SOURCES)
    assert all(text.startswith("qqq ") for text in texts(prepared, prepared.train, "target"))
    assert texts(prepared, prepared.dev, "target") == prepared.dev_references


def test_protected_symbols_reach_both_vocabularies(write: Write, tmp_path: Path) -> None:
    corpus = write("a", [f"{source} <br>{{name}}" for source in SOURCES])
    for shared in (True, False):
        preparation = Preparation([corpus], vocab_size=320, shared=shared, protected=["<br>", "{name}"])
        prepared = prepare(preparation, tmp_path / f"{shared}")
        for side in ("source", "target"):
            tokenizer = getattr(prepared.vocabularies, side)
            for index in range(len(prepared.train)):
                pieces = tokenizer.pieces(prepared.train.ids(side, index).tolist())
                assert {"<br>", "{name}"} <= set(pieces)
        assert all("<br>{name}" in text for text in texts(prepared, prepared.train, "target"))


# Language tags


@pytest.mark.parametrize("shared", [True, False])
def test_each_source_begins_with_the_tag_of_its_target_language(write: Write, tmp_path: Path, shared: bool) -> None:
    corpora = [write("a", SOURCES, "xx"), write("b", SOURCES, "yy")]
    prepared = prepare(Preparation(corpora, vocab_size=400, shared=shared, language_tags=True), tmp_path / "out")
    for pairs in (prepared.train, prepared.dev):
        languages = [target.split()[0] for target in texts(prepared, pairs, "target")]
        assert set(languages) == {"xx", "yy"}
        assert first_pieces(prepared, pairs) == [f"<2{language}>" for language in languages]
    assert texts(prepared, prepared.dev, "source") == prepared.dev_sources
    assert not set(prepared.dev_sources) & set(texts(prepared, prepared.train, "source"))


def test_the_same_pair_in_two_languages_is_no_duplicate(tmp_path: Path) -> None:
    for name in ("a.en", "a.de", "b.en", "b.fr"):
        (tmp_path / name).write_text("".join(f"{word} {n}\n" for n, word in enumerate(["Tom", "Taxi", "Hotel"] * 20)))
    corpora = [Corpus(tmp_path / "a.en", tmp_path / "a.de"), Corpus(tmp_path / "b.en", tmp_path / "b.fr")]
    for tags, duplicates in ((True, 0), (False, 60)):
        preparation = Preparation(corpora, vocab_size=320, language_tags=tags, allow_identical=True)
        assert prepare(preparation, tmp_path / f"{tags}").counts["duplicate"] == duplicates


def test_a_given_dev_set_carries_the_tag_of_its_direction(write: Write, tmp_path: Path) -> None:
    corpora = [write("a", SOURCES, "xx"), write("b", SOURCES, "yy")]
    dev = replace(write("dev", ["A river."], "xx"), languages=Direction("en", "yy"))
    prepared = prepare(Preparation(corpora, dev=[dev], vocab_size=400, language_tags=True), tmp_path / "out")
    assert first_pieces(prepared, prepared.dev) == ["<2yy>"]


def test_a_corpus_that_does_not_say_its_language_is_named(tmp_path: Path, write: Write) -> None:
    known, unknown = write("a", SOURCES), Corpus(tmp_path / "b.tsv")
    with pytest.raises(ConfigError, match=r"^b\.tsv: .*does not say its target language\..*--languages, as en-de"):
        Preparation([known, unknown], language_tags=True)
    Preparation([known, replace(unknown, languages=Direction("en", "yy"))], language_tags=True)
    with pytest.raises(ConfigError, match=r"^dev\.en \+ dev\.zz: 'zz' is not a language that is learned\. .*Valid: xx"):
        Preparation([known], dev=[write("dev", SOURCES, "zz")], language_tags=True)


def test_dev_sets_of_several_corpora_are_measured_on_together_and_trained_on_nowhere(tmp_path: Path) -> None:
    french = tmp_path / "french.tsv"
    pairs = islice(builtin_corpus("tatoeba-en-fr").pairs(), 20_000)
    french.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    preparation = Preparation(
        [builtin_corpus("everyday-en-twi"), Corpus(french)],
        dev=[builtin_corpus("everyday-en-twi", "dev"), builtin_corpus("tatoeba-en-fr", "dev")],
        vocab_size=2000,
    )
    prepared = prepare(preparation, tmp_path)
    assert len(prepared.dev) == 561 + 2_094
    # Each corpus is apart from its own dev set, but the French one holds English sentences of the Twi dev set.
    assert prepared.counts["in_a_dev_set"] == prepared.counts["kept"] - len(prepared.train) > 20
    dev = {source_key(source) for source in prepared.dev_sources}
    assert not dev & {source_key(source) for source in texts(prepared, prepared.train, "source")}
    assert json.loads((tmp_path / "prepared.json").read_text())["counts"] == prepared.counts


def test_memory_does_not_grow_with_the_corpora(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SAMPLE_PAIRS", 500)
    monkeypatch.setattr(module, "AT_ONCE", 200)

    dev = write("dev", ["The number 3."])

    def peak(pairs: int) -> int:
        corpus = write("a", [f"the number {n} is as good as any" for n in range(pairs)])
        tracemalloc.start()
        try:
            prepare(Preparation([corpus], dev=[dev], vocab_size=300), tmp_path / "out")
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(1_000)  # what is loaded once, and what waits to be freed
    assert peak(8_000) - peak(4_000) < 2**18  # the texts of 4,000 pairs would be more than twice as much
