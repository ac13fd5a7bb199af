"""A parser gives a tree over the words of each sentence, be its model ever so bad."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from transduce.bundle import Bundle, BundleConfig
from transduce.engines.ctranslate2_engine import CTranslate2Engine
from transduce.engines.torch_engine import TorchEngine
from transduce.errors import BundleError, InputError
from transduce.interop.ctranslate2 import compile_model
from transduce.model import Transformer, TransformerConfig
from transduce.parser import Parser
from transduce.text import Vocabularies
from transduce.text.penn import split_words
from transduce.text.trees import Tree, symbols_of

SENTENCES = ["The cat sat.", "Rain", "The dog (a puppy) doesn't bark, does it?", "Birds sing."]


def make_model(path: Path, labels: tuple[str, ...] = ("S", "NP", "VP")) -> Bundle:
    """Random weights over the symbols of trees."""
    torch.manual_seed(2)
    tree = Tree("S", (Tree("NP", ("The", "cat")), Tree("VP", ("sat",)), "."))
    pairs = [(sentence, tree.symbols()) for sentence in SENTENCES]
    protected = symbols_of(labels) if labels else []
    vocabularies = Vocabularies.learn(pairs, 900, shared=False, protected=protected)
    sizes = {"target_vocab_size": vocabularies.target.size, "tying": "target"}
    config = TransformerConfig.tiny(vocabularies.source.size, d_model=16, d_ff=32, heads=2, **sizes)
    weights = {name: value.detach() for name, value in Transformer(config).named_parameters()}
    return Bundle.write(path, BundleConfig(architecture=asdict(config)), weights, vocabularies, {}, "card")


def test_trees_have_the_words_of_their_sentences_in_order(tmp_path: Path) -> None:
    parser = Parser.load(make_model(tmp_path / "m").path)
    trees = parser.parse(SENTENCES)
    assert [tree.words() for tree in trees] == [split_words(sentence) for sentence in SENTENCES]
    assert set().union(*(tree.labels() for tree in trees)) <= {"S", "NP", "VP"}
    assert parser.parse(SENTENCES[2]) == trees[2]  # alone as in a batch
    assert parser.parse_words([["a(b", "c", "*"]])[0].words() == ["a(b", "c", "*"]


def test_decoding_options_are_passed_on(tmp_path: Path) -> None:
    parser = Parser.load(make_model(tmp_path / "m").path)
    (flat,) = parser.parse(
        ["The cat sat."], max_length_ratio=0, max_length_extra=8
    )  # a space, 4 words, a pair, the end
    assert len(flat.spans()) == 1
    (opening,) = (index for index in parser.symbols.openings if parser.vocabularies.target.pieces([index]) == ["(NP"])
    assert "NP" not in parser.parse("The cat sat.", suppress=(opening,)).labels()


def test_a_compiled_model_leaves_trees_to_pytorch(tmp_path: Path) -> None:
    bundle = make_model(tmp_path / "m")
    plain, vocabularies = TorchEngine(bundle.model()), bundle.vocabularies()
    compile_model(bundle.model(), vocabularies, tmp_path / "compiled", "float32")
    fast = CTranslate2Engine(tmp_path / "compiled", vocabularies, fallback=lambda: plain)
    words = [split_words(sentence) for sentence in SENTENCES]
    sources = vocabularies.source.encode_batch([" ".join(each) for each in words])
    options = Parser(vocabularies, plain).options(words, beam=2)
    assert fast.decode(sources, options) == plain.decode(sources, options)
    assert Parser(vocabularies, fast).parse(SENTENCES) == Parser(vocabularies, plain).parse(SENTENCES)


def test_words_of_too_few_sentences_are_noticed_by_the_engine(tmp_path: Path) -> None:
    parser = Parser.load(make_model(tmp_path / "m").path)
    options = parser.options([["The", "cat"]])
    with pytest.raises(InputError, match=r"the words of 1 sentences for 2\. Give those of each"):
        parser.engine.decode(parser.vocabularies.source.encode_batch(["The cat", "Rain"]), options)


def test_a_model_that_is_no_parser_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"m: this model is no parser: the vocabulary has no symbols for trees"):
        Parser.load(make_model(tmp_path / "m", labels=()).path)


def test_a_sentence_without_words_is_named(tmp_path: Path) -> None:
    parser = Parser.load(make_model(tmp_path / "m").path)
    with pytest.raises(InputError, match=r"sentence 2 has no words"):
        parser.parse(["Rain", " "])
    assert parser.parse([]) == []
