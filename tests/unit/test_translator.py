"""Text in, text out: in order, with its spacing, however it is batched."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from transduce.bundle import Bundle, BundleConfig
from transduce.decoding import DecodingOptions, Hypothesis
from transduce.engines import stepper_engine
from transduce.engines.engine import Engine
from transduce.errors import BundleError, ConfigError, InputError
from transduce.model import Transformer, TransformerConfig
from transduce.text import Tokenizer, Vocabularies
from transduce.translator import Translation, Translator

LINES = [f"{subject} {verb} the {thing}." for subject in ("We", "They", "Kofi and Ama")
         for verb in ("painted", "understand", "repaired") for thing in ("house", "bicycles", "question")]  # fmt: skip
TEXTS = [
    "They understand the question.",
    "We",
    "Kofi and Ama painted the house, and they repaired the bicycles.",
    "",
    "We painted the bicycles.",
    "ɛno 👍",
    "They understand the question.",
]
PARAGRAPH = [
    "Kofi and Ama painted the house on the hill before the rain came.",
    "They understand the question, but nobody has an answer to it yet.",
    "We repaired the bicycles!",
    "Who painted the house, and who repaired the bicycles of Kofi and Ama?",
]
EOS = 2
SHORT = {"max_length_extra": 4, "guard": False}
"""A random model seldom ends a sentence by itself, and guards would make it try again."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tokenizer = Tokenizer.learn(LINES, 300)
    torch.manual_seed(5)
    shape = {"d_model": 16, "d_ff": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "tying": "none"}
    model = Transformer(TransformerConfig.tiny(tokenizer.size, **shape))
    weights = {name: value.detach() for name, value in model.named_parameters()}
    config = BundleConfig(architecture=asdict(model.config), source_language="en", target_language="xx")
    vocabularies = Vocabularies(tokenizer, tokenizer)
    return Bundle.write(tmp_path_factory.mktemp("models") / "random", config, weights, vocabularies, {}, "").path


@pytest.fixture(scope="module")
def translator(path: Path) -> Translator:
    return Translator.load(path)


@pytest.fixture(scope="module", params=["shared", "apart"])
def polyglot(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Translator:
    """A random model that was told apart "de" and "fr" by tags, with one vocabulary or two."""
    shared = request.param == "shared"
    pairs = [(line, line.upper()) for line in LINES]
    vocabularies = Vocabularies.learn(pairs, 320, shared=shared, languages=["de", "fr"])
    torch.manual_seed(5)
    shape = {"d_model": 16, "d_ff": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "tying": "none"}
    target = None if shared else vocabularies.target.size
    model = Transformer(TransformerConfig.tiny(vocabularies.source.size, target_vocab_size=target, **shape))
    with torch.no_grad():
        model.source_embedding.tokens.weight[vocabularies.source.tags] *= 30  # or a single token would hardly matter
    weights = {name: value.detach() for name, value in model.named_parameters()}
    config = BundleConfig(architecture=asdict(model.config), target_language="de", target_languages=["de", "fr"])
    return Translator(Bundle.write(tmp_path_factory.mktemp("models") / "m", config, weights, vocabularies, {}, ""))


class Echo(Engine):
    """An engine that says what it hears, so that what it was given can be read."""

    def decode(self, sources: Sequence[Sequence[int]], options: DecodingOptions) -> list[list[Hypothesis]]:
        self.options, self.sources = options, sources
        return [
            [Hypothesis([*source, EOS], -1.0 - rank, -1.0 - rank, [-1.0 - rank]) for rank in range(options.n_best)]
            for source in sources
        ]


@pytest.fixture
def echo(path: Path) -> Translator:
    translator = Translator.load(path)
    translator.engine = Echo()  # type: ignore[assignment]
    return translator


def with_decoding(path: Path, to: Path, decoding: dict[str, Any]) -> Path:
    shutil.copytree(path, to)
    config = json.loads((to / "config.json").read_text()) | {"decoding": decoding}
    (to / "config.json").write_text(json.dumps(config))
    return to


def close(one: Translation, other: Translation) -> bool:
    return one.text == other.text and one.score == pytest.approx(other.score, abs=1e-4)


def test_a_list_gives_the_translations_in_order_and_as_one_by_one(translator: Translator) -> None:
    together = translator.translate(TEXTS, **SHORT)
    apart = [translator.translate(text, **SHORT) for text in TEXTS]
    assert len(together) == len(TEXTS)
    assert all(close(one, other) for one, other in zip(together, apart, strict=True))
    assert len({translation.text for translation in together}) > 3  # or it could not have told their order


def test_a_text_gives_a_translation_and_a_list_of_one_a_list(translator: Translator) -> None:
    one = translator.translate(TEXTS[0], **SHORT)
    assert isinstance(one, Translation)
    assert one.text
    assert translator.translate([TEXTS[0]], **SHORT) == [one]
    assert translator.translate((TEXTS[0],), **SHORT) == [one]
    assert translator.translate([], **SHORT) == []


def test_the_same_model_gives_the_same_translations(path: Path, translator: Translator) -> None:
    assert Translator.load(str(path)).translate(TEXTS, **SHORT) == translator.translate(TEXTS, **SHORT)


@pytest.mark.parametrize("text", ["", " ", "\n", " \t\u3000\n", " " * 300])
def test_an_empty_text_stays_as_it_is(translator: Translator, text: str) -> None:
    assert translator.translate(text).text == text
    assert translator.translate(["", text, TEXTS[0]], **SHORT)[1].text == text


@pytest.mark.parametrize("count", [1, 2, 4])
def test_n_best_gives_that_many_alternatives_best_first(translator: Translator, count: int) -> None:
    for translation in translator.translate(TEXTS[:3], n_best=count, **SHORT):
        scores = [alternative.score for alternative in translation.alternatives]
        assert len(scores) == count
        assert scores == sorted(scores, reverse=True)
        assert (translation.text, translation.score) == (translation.alternatives[0].text, scores[0])
        assert all(score < 0 for score in scores)


def test_alternatives_of_a_paragraph_are_best_first_too(translator: Translator) -> None:
    translation = translator.translate(" ".join(PARAGRAPH), n_best=3, **SHORT)
    scores = [alternative.score for alternative in translation.alternatives]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)


WAYS = ["Nobody knows.", "They understand the question.", "They understand that question.", "They see the question."]


class Candidates(Engine):
    """Writes the same four sentences whatever it reads, the one that is unlike the others most probable."""

    def __init__(self, vocabularies: Vocabularies, step: float = 0.1) -> None:
        self.step = step  # from one score to the next
        self.rows = [[*vocabularies.target.encode(way), EOS] for way in WAYS]
        self.asked: list[int] = []

    def decode(self, sources: Sequence[Sequence[int]], options: DecodingOptions) -> list[list[Hypothesis]]:
        self.asked.append(options.n_best)
        scores = [-1.0 - place * self.step for place in range(len(self.rows))]
        found = [Hypothesis(row, score, 2 * score, []) for row, score in zip(self.rows, scores, strict=True)]
        return [found[: options.n_best] for _ in sources]


def test_by_consensus_the_hypothesis_that_most_others_agree_with_is_taken(path: Path) -> None:
    bundle = Bundle.open(path)
    engine = Candidates(bundle.vocabularies())
    translator = Translator(bundle, engine)
    assert translator.translate("We understand.", beam=4).text == WAYS[0]
    chosen = translator.translate("We understand.", beam=4, mbr=True)
    assert engine.asked == [1, 4]
    assert chosen.text in WAYS[1:]
    assert chosen.score == pytest.approx(-1.0 - WAYS.index(chosen.text) / 10)  # that of the model, as ever
    assert [each.text for each in chosen.alternatives] == [chosen.text]
    ranked = translator.translate("We understand.", beam=4, mbr=True, n_best=4).alternatives
    assert [each.text for each in ranked][-1] == WAYS[0]
    assert sorted(each.text for each in ranked) == sorted(WAYS)


def test_what_is_far_more_probable_wins_by_consensus_too_unless_it_is_a_sample_like_others(path: Path) -> None:
    bundle = Bundle.open(path)
    translator = Translator(bundle, Candidates(bundle.vocabularies(), step=10.0))
    assert translator.translate("We understand.", beam=4, mbr=True).text == WAYS[0]
    drawn = translator.translate("We understand.", sampling=True, n_best=4, mbr=True)
    assert drawn.text in WAYS[1:]
    assert drawn.alternatives[-1].text == WAYS[0]


def test_consensus_needs_several_hypotheses(translator: Translator) -> None:
    with pytest.raises(ConfigError, match=r"several hypotheses.*beam=4"):
        translator.translate("We", beam=1, mbr=True)


@pytest.mark.parametrize("space", [" ", "  ", "\n", "\n\n", " \n\t"])
def test_white_space_between_the_sentences_of_a_paragraph_is_kept(echo: Translator, space: str) -> None:
    text = f"\n{space.join(PARAGRAPH)}\n"
    assert echo.translate(text).text == text
    first, second = echo.translate([text, "We \u00a0 painted."])
    assert (first.text, second.text) == (text, "We painted.")


def test_lines_of_a_short_text_stay_lines(echo: Translator) -> None:
    text = "We painted\nthe house.\r\n\n They understand"
    assert echo.translate(text).text == text
    assert len(echo.engine.sources) == 3  # type: ignore[attr-defined]


@pytest.mark.parametrize("text", ["We painted the house " * 300 + "\n", "ɛ" * 900, "日本語" * 150 + " ", "👍🏽" * 200])
def test_a_sentence_too_long_for_any_model_is_cut_and_none_of_it_is_lost(echo: Translator, text: str) -> None:
    assert echo.translate(text).text == text
    assert echo.translate(text, guard=False).text == text
    lengths = [len(source) for source in echo.engine.sources]  # type: ignore[attr-defined]
    assert len(lengths) > 1
    assert max(lengths) <= 400
    assert min(lengths[:-1]) > 200


def test_parts_of_a_long_sentence_begin_with_words(echo: Translator, polyglot: Translator) -> None:
    echo.translate("understand " * 500)
    firsts = [echo.vocabularies.source.pieces(source[:1])[0] for source in echo.engine.sources]  # type: ignore[attr-defined]
    assert len(firsts) > 1
    assert all(first.startswith("▁") for first in firsts)
    (batch,) = polyglot.sentences(["understand " * 500], "fr").wanted()
    assert {source[0] for source in batch.sources} == {polyglot.vocabularies.source.tag("<2fr>")}


def test_a_prefix_may_be_text(translator: Translator) -> None:
    assert translator.translate("We painted", prefix="house", **SHORT).text.startswith("house")


def test_sentences_of_a_paragraph_are_translated_each_by_itself(translator: Translator) -> None:
    whole = translator.translate("\n".join(PARAGRAPH), **SHORT)
    apart = translator.translate(PARAGRAPH, **SHORT)
    assert whole.text == "\n".join(translation.text for translation in apart)
    assert whole.score == pytest.approx(sum(translation.score for translation in apart), abs=1e-3)


def test_what_a_model_writes_as_bytes_breaks_no_line(echo: Translator) -> None:
    tokenizer = echo.vocabularies.target
    odd = [tokenizer.all_pieces().index(f"<0x{byte:02X}>") for byte in b"a\n\r\0b\xe2\x80\xa8"]

    class Odd(Engine):
        def decode(self, sources: Sequence[Sequence[int]], options: DecodingOptions) -> list[list[Hypothesis]]:
            return [[Hypothesis([*odd, EOS], -1.0, -1.0, [])] for _ in sources]

    echo.engine = Odd()  # type: ignore[assignment]
    assert [each.text for each in echo.translate(["We", "They"])] == ["a b", "a b"]


def test_special_ids_are_never_written(translator: Translator) -> None:
    texts = [
        alternative.text for one in translator.translate(TEXTS, n_best=4, **SHORT) for alternative in one.alternatives
    ]
    assert not any(re.search(r"<pad>|<s>|</s>|<unk>|⁇", text) for text in texts)


def test_an_unknown_option_is_answered_with_the_nearest(translator: Translator) -> None:
    with pytest.raises(ConfigError, match=r"'bean' is not a decoding option\. Did you mean 'beam'\?"):
        translator.translate("We", bean=2)
    with pytest.raises(ConfigError, match=r"n_best=9 asks for more hypotheses than beam=4 keeps"):
        translator.translate("We", n_best=9)


@pytest.mark.parametrize("most", [1, 12, 40])
def test_batches_by_tokens_change_nothing(translator: Translator, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    expected = translator.translate(TEXTS, **SHORT)
    shapes: list[tuple[int, ...]] = []
    decode = stepper_engine.decode

    def counted(model: Any, rows: torch.Tensor, options: DecodingOptions) -> list[list[Hypothesis]]:
        shapes.append(tuple(rows.shape))
        return decode(model, rows, options)

    monkeypatch.setattr(stepper_engine, "decode", counted)
    monkeypatch.setattr(stepper_engine, "BATCH_TOKENS", most)
    monkeypatch.setattr(stepper_engine, "BATCH_ROWS", 1)
    found = translator.translate(TEXTS, **SHORT)
    assert all(close(one, other) for one, other in zip(found, expected, strict=True))
    assert len(shapes) > 1
    assert sum(rows for rows, _ in shapes) == 6  # the empty text has nothing to decode
    assert all(rows == 1 or rows * length <= most for rows, length in shapes)


def test_sentences_however_long_are_decoded_several_at_a_time() -> None:
    batches = list(stepper_engine._by_tokens([500, 20, 480, 510, 490], most=1000, rows=3))
    assert batches == [[3, 0, 4], [2, 1]]


def test_a_prefix_for_each_text_stays_with_its_text(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stepper_engine, "BATCH_TOKENS", 30)
    starts = [translator.vocabularies.target.encode(word) for word in ("house", "bicycles", "question")]
    found = translator.translate(["We", LINES[0], "They painted"], prefix=starts, **SHORT)
    assert all(one.text.startswith(word) for one, word in zip(found, ("house", "bicycles", "question"), strict=True))


def test_a_prefix_for_each_text_may_be_given_where_one_text_is_empty(translator: Translator) -> None:
    starts = [translator.vocabularies.target.encode(word) for word in ("house", "bicycles", "question")]
    found = translator.translate(["We", "", "They painted"], prefix=starts, **SHORT)
    assert found[0].text.startswith("house")
    assert found[1].text == ""
    assert found[2].text.startswith("question")


# Languages


def test_the_language_chooses_the_translation_and_the_first_is_the_default(polyglot: Translator) -> None:
    german, french, default = (polyglot.translate(TEXTS, to, **SHORT) for to in ("de", "fr", None))
    assert default == german
    assert sum(one.text != other.text for one, other in zip(german, french, strict=True)) >= 4
    assert german[3].text == french[3].text == ""


def test_every_sentence_of_a_text_gets_the_tag(polyglot: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    echo = Echo()
    monkeypatch.setattr(polyglot, "engine", echo)
    polyglot.translate(["\n" + " ".join(PARAGRAPH), "", "We"], to="fr")
    tag = polyglot.vocabularies.source.tag("<2fr>")
    assert [source[0] for source in echo.sources] == [tag] * (len(PARAGRAPH) + 1)
    assert set(polyglot.vocabularies.target.tags) <= set(echo.options.suppress)


def test_tags_are_never_written(polyglot: Translator) -> None:
    found = polyglot.translate(TEXTS, n_best=4, **SHORT)
    assert not any("<2" in each.text for one in found for each in one.alternatives)


def test_an_unknown_language_is_answered_with_the_nearest(polyglot: Translator, translator: Translator) -> None:
    with pytest.raises(ConfigError, match=r"does not translate into 'fe'\. Did you mean 'fr'\? Valid: de, fr\."):
        polyglot.translate("We", to="fe")
    with pytest.raises(ConfigError, match=r"does not translate into 'de'\. .*Valid: xx\."):
        translator.score("We", "They", to="de")


def test_a_model_of_one_language_may_be_asked_for_it(translator: Translator) -> None:
    assert translator.translate("We", to="xx", **SHORT) == translator.translate("We", **SHORT)


def test_a_model_that_does_not_say_its_language_cannot_be_asked_for_one(path: Path, tmp_path: Path) -> None:
    silent = with_decoding(path, tmp_path / "silent", {})
    config = json.loads((silent / "config.json").read_text()) | {"target_language": None}
    (silent / "config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigError, match=r"does not translate into 'de'\. It does not say"):
        Translator.load(silent).translate("We", to="de")


# Scores of given translations


TARGETS = ["They painted.", "house", "", "We understand the bicycles.", "ɛ", "We", "They repaired the house!"]


def test_a_list_of_scores_is_in_order_and_as_one_by_one(
    translator: Translator, polyglot: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[tuple[int, int]] = []
    score = stepper_engine.score

    def counted(
        model: Any, source_ids: torch.Tensor, targets: list[list[int]], options: DecodingOptions
    ) -> list[Hypothesis]:
        batches.append((len(targets), max(source_ids.shape[1], *map(len, targets))))
        return score(model, source_ids, targets, options)

    monkeypatch.setattr(stepper_engine, "score", counted)
    monkeypatch.setattr(stepper_engine, "SCORED_TOKENS", 60)
    for each in (translator, polyglot):
        batches.clear()
        together = each.score(TEXTS, TARGETS)
        assert 1 < len(batches) < len(TEXTS)
        assert sum(rows for rows, _ in batches) == len(TEXTS)
        assert all(rows == 1 or rows * width <= 60 for rows, width in batches)
        for found, source, target in zip(together, TEXTS, TARGETS, strict=True):
            alone = each.score(source, target)
            assert found.tokens == alone.tokens == [*each.vocabularies.target.encode(target), EOS]
            assert found.log_probability == pytest.approx(alone.log_probability, abs=1e-4)
            assert found.token_scores == pytest.approx(alone.token_scores, abs=1e-4)


def test_the_language_is_part_of_what_is_scored(polyglot: Translator) -> None:
    german, french = (polyglot.score(TEXTS[0], TARGETS[0], to).log_probability for to in ("de", "fr"))
    assert abs(german - french) > 0.1
    assert polyglot.score(TEXTS[0], TARGETS[0]).log_probability == pytest.approx(german)


@pytest.mark.parametrize(("source", "target"), [(["a"], []), (["a"], ["b", "c"]), ("a", ["b"]), (["a"], "b")])
def test_sources_and_targets_must_be_as_many(translator: Translator, source: Any, target: Any) -> None:
    with pytest.raises(InputError, match="one target for each source"):
        translator.score(source, target)
    assert translator.score([], []) == []


# Defaults and damage


def test_the_models_own_decoding_defaults_are_used_unless_overridden(path: Path, tmp_path: Path) -> None:
    translator = Translator.load(with_decoding(path, tmp_path / "own", {"beam": 3, "n_best": 3}))
    assert len(translator.translate("We", **SHORT).alternatives) == 3
    assert len(translator.translate("We", n_best=1, **SHORT).alternatives) == 1


def test_a_model_can_ask_for_consensus_itself(path: Path) -> None:
    bundle = Bundle.open(path)
    bundle = replace(bundle, config=replace(bundle.config, mbr=True))
    translator = Translator(bundle, Candidates(bundle.vocabularies()))
    assert translator.translate("We understand.").text in WAYS[1:]
    assert translator.translate("We understand.", mbr=False).text == WAYS[0]
    assert translator.translate("We understand.", beam=1).text == WAYS[0]  # one hypothesis has nobody to agree with
    shown = translator.attention("We understand.").target.tokens
    chosen = translator.translate("We understand.").text
    assert "".join(shown).replace("▁", " ").strip().startswith(chosen.split()[0])


def test_no_beam_is_the_models_own_or_as_many_as_are_wanted(path: Path, tmp_path: Path) -> None:
    translator = Translator.load(with_decoding(path, tmp_path / "own", {"beam": 2}))
    for asked, kept in ((None, 2), (3, 3)):
        assert translator.sentences(["We"], beam=asked).wanted()[0].options.beam == kept
    assert translator.sentences(["We"], beam=None, n_best=5).wanted()[0].options.beam == 5


def test_tokens_that_the_model_says_never_to_write_are_suppressed(path: Path, tmp_path: Path) -> None:
    translator = Translator.load(with_decoding(path, tmp_path / "own", {"suppress": [7]}))
    translator.engine = engine = Echo()  # type: ignore[assignment]
    translator.translate("We")
    assert {0, 1, 3, 7} <= set(engine.options.suppress)


@pytest.mark.parametrize("decoding", [{"bean": 2}, {"beam": "wide"}, {"beam": 0}])
def test_decoding_defaults_that_cannot_work_are_the_models_fault(
    path: Path, tmp_path: Path, decoding: dict[str, Any]
) -> None:
    damaged = with_decoding(path, tmp_path / "damaged", decoding)
    with pytest.raises(BundleError, match=str(damaged)):
        Translator.load(damaged).translate("We")


def test_a_directory_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=rf"{tmp_path}.*there is no model here"):
        Translator.load(tmp_path)
