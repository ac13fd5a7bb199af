"""Vocabularies of others: the ids that `transformers` gives, renumbered, and the texts that it gives back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from transduce.errors import BundleError, ConfigError
from transduce.interop.renumber import Renumbering
from transduce.interop.vocabularies import TheirVocabulary
from transduce.interop.vocabulary_files import M2M_LANGUAGES, WMT21_LANGUAGES, read_vocabulary
from transduce.text import Vocabularies
from transduce.text.languages import Direction
from transduce.text.tokenizer import BOS, EOS, PAD, UNKNOWN

TEXTS = [
    "We painted the house.",
    "Nobody will find the question, 12 or 7",
    "They repaired  the   bicycles!",
    "xyzzy 99 % of Zürich — “quoted”",
    "Kofi and Ama understand the café in the Straße?",
    "ﬁne ligatures, e\u0301 composed",
    "你好 Ɛte sɛn 🎉",
]
MODEL_TYPES = {
    "marian": "marian", "m2m": "m2m_100", "nllb": "m2m_100", "mbart50": "mbart", "mbart": "mbart", "t5": "t5",
    "bart": "bart", "gpt2": "gpt2", "bert": "bert",
}  # fmt: skip


class Kind(NamedTuple):
    name: str
    theirs: Any
    vocabulary: TheirVocabulary
    numbers: Renumbering
    ours: Vocabularies


@pytest.fixture(scope="module", params=list(MODEL_TYPES))
def kind(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, save_tokenizer: Callable[[str, Path], Any]
) -> Kind:
    directory = tmp_path_factory.mktemp(request.param)
    theirs = save_tokenizer(request.param, directory)
    config = {"model_type": MODEL_TYPES[request.param]}
    vocabulary = read_vocabulary(directory, config)
    vocabulary = vocabulary.widened(len(vocabulary.names) + 3)
    start = vocabulary.pad if vocabulary.pad is not None else vocabulary.eos
    numbers = Renumbering.of(
        len(vocabulary.names), pad=vocabulary.pad, start=start, eos=vocabulary.eos, unknown=vocabulary.unknown
    )
    ours = vocabulary.vocabularies([numbers], vocabulary.direction(None))
    return Kind(request.param, theirs, vocabulary, numbers, ours)


def their_ids(kind: Kind, text: str, target: bool = False) -> list[int]:
    """Without start and end, in our numbers; what is unknown is unknown however it is called."""
    call = {"text_target": text} if target else {"text": text}
    found: list[int] = kind.theirs(**call, add_special_tokens=False)["input_ids"]
    numbers = kind.numbers.ours()
    return [UNKNOWN if index == kind.theirs.unk_token_id else numbers[index] for index in found]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_has_their_ids_renumbered(kind: Kind, text: str) -> None:
    assert kind.ours.source.encode(text) == their_ids(kind, text)
    assert kind.ours.target.encode(text) == their_ids(kind, text, target=True)
    assert kind.ours.source.encode_batch([text, "", text]) == [their_ids(kind, text), [], their_ids(kind, text)]


@pytest.mark.parametrize("text", TEXTS)
def test_ids_decode_to_their_text(kind: Kind, text: str) -> None:
    ids = kind.theirs(text_target=text, add_special_tokens=False)["input_ids"]
    expected = kind.theirs.decode(ids, skip_special_tokens=True)
    numbers = kind.numbers.ours()
    ours = kind.ours.target.decode([BOS, *(numbers[index] for index in ids), EOS, PAD])
    assert ours.strip() == expected.strip()


def test_special_ids_are_ours_and_every_piece_has_one_name(kind: Kind) -> None:
    source = kind.ours.source
    assert source.pieces([PAD, BOS, EOS, UNKNOWN]) == ["<pad>", "<s>", "</s>", "<unk>"]
    assert len(set(source.all_pieces())) == source.size == kind.numbers.size
    assert kind.ours.shared
    unnamed = [kind.numbers.ours()[index] for index in range(source.size - 7, len(kind.vocabulary.names))]
    assert set(unnamed[-3:]) <= set(source.unwritten)  # rows that no piece has are never written


def test_text_that_looks_special_is_only_text(kind: Kind) -> None:
    looks = " ".join(kind.theirs.all_special_tokens[:3]) + " __fr__ >>fra<<"
    ids = kind.ours.source.encode(looks)
    assert not {PAD, BOS, EOS, *kind.ours.source.tags} & set(ids)


def test_files_give_the_same_vocabularies(kind: Kind, tmp_path: Path) -> None:
    for name, contents in kind.ours.files().items():
        (tmp_path / name).write_bytes(contents)
    read = Vocabularies.load(tmp_path, shared=True)
    assert read.shared
    for text in TEXTS:
        assert read.source.encode(text) == kind.ours.source.encode(text)
        assert read.target.encode(text) == kind.ours.target.encode(text)
    assert read.source.frame == kind.ours.source.frame


@pytest.mark.parametrize("kind", ["m2m", "nllb", "mbart50"], indirect=True)
def test_language_codes_stand_around_a_text_as_theirs_do(kind: Kind) -> None:
    numbers = kind.numbers.ours()
    whole = kind.theirs(TEXTS[0])["input_ids"]
    (source,) = kind.ours.encode_sources(TEXTS[:1], kind.ours.source.frame.target)
    assert [*source, EOS] == [numbers[index] for index in whole]
    language, code = {"m2m": ("sw", "__sw__"), "nllb": ("twi_Latn",) * 2, "mbart50": ("de_DE",) * 2}[kind.name]
    assert kind.ours.start(language) == [numbers[kind.theirs.convert_tokens_to_ids(code)]]


@pytest.mark.parametrize("kind", ["bart"], indirect=True)
def test_what_bart_puts_before_a_text_stands_there(kind: Kind) -> None:
    numbers = kind.numbers.ours()
    (source,) = kind.ours.encode_sources(TEXTS[:1])
    assert [*source, EOS] == [numbers[index] for index in kind.theirs(TEXTS[0])["input_ids"]]


def test_marian_with_several_targets_reads_a_code_first(
    tmp_path: Path, save_tokenizer: Callable[[str, Path], Any]
) -> None:
    theirs = save_tokenizer("marian_to_several", tmp_path)
    vocabulary = read_vocabulary(tmp_path, {"model_type": "marian"})
    numbers = Renumbering.of(len(vocabulary.names), pad=vocabulary.pad, start=vocabulary.pad or 0, eos=0, unknown=1)
    ours = vocabulary.vocabularies([numbers], vocabulary.direction(Direction("en", "fra")))
    ids = theirs(">>twi<< We painted the house.")["input_ids"]
    (source,) = ours.encode_sources(["We painted the house."], "twi")
    assert [*source, EOS] == [numbers.ours()[index] for index in ids]


def test_the_languages_of_m2m_are_theirs() -> None:
    from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES

    assert FAIRSEQ_LANGUAGE_CODES["m2m100"] == M2M_LANGUAGES.split()
    assert FAIRSEQ_LANGUAGE_CODES["wmt21"] == WMT21_LANGUAGES.split()


@pytest.mark.parametrize("kind", ["m2m", "nllb"], indirect=True)
def test_a_language_without_a_code_is_answered_with_the_nearest(kind: Kind) -> None:
    with pytest.raises(ConfigError, match="not 'klingon'") as caught:
        kind.vocabulary.direction(Direction("en", "klingon"))
    assert "--languages" in str(caught.value)


def test_ids_with_gaps_are_refused(tmp_path: Path, save_tokenizer: Callable[[str, Path], Any]) -> None:
    save_tokenizer("marian", tmp_path)
    (tmp_path / "vocab.json").write_text('{"</s>": 0, "<unk>": 1, "a": 7}')
    with pytest.raises(BundleError, match="each once"):
        read_vocabulary(tmp_path, {"model_type": "marian"})
