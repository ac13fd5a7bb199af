"""Files of trees, as pairs to learn from."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from transduce.data.corpus import Pair
from transduce.data.prepare import Preparation, prepare
from transduce.data.treebank import TREE_RULES, Treebank, protected_symbols
from transduce.errors import InputError
from transduce.text.trees import Tree

LINES = "( (S (NP-SBJ (PRP It)) (VP (VBZ rains)) (. .)) )\n\n( (NP (-NONE- *)) )\n( (NP (NN Rain)) )\n"
ASSETS = Path(__file__).parents[3] / "src/transduce/assets/corpora/craft-trees"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "trees.mrg.gz").write_bytes(gzip.compress(LINES.encode()))
    return tmp_path / "trees.mrg.gz"


def test_trees_become_pairs_and_blank_lines_nothing(path: Path) -> None:
    trees = [Tree("S", (Tree("NP", ("It",)), Tree("VP", ("rains",)), ".")), Tree("NP", ("Rain",))]
    assert list(Treebank(path).trees()) == trees
    sentences = ["It rains .", "Rain"]
    pairs = [Pair(sentence, tree.symbols()) for sentence, tree in zip(sentences, trees, strict=True)]
    assert list(Treebank(path).pairs()) == pairs


def test_what_is_wrong_is_named_by_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.mrg"
    path.write_text("(NP (NN a))\n(NP (NN b)\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"bad\.mrg:2: not a tree: 1 brackets are not closed"):
        list(Treebank(path).trees())
    path.write_text("\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"bad\.mrg: there are no trees"):
        list(Treebank(path).pairs())
    with pytest.raises(InputError, match=r"there is no such file"):
        list(Treebank(tmp_path / "none.mrg").trees())


def test_prepared_trees_keep_their_symbols_whole(path: Path, tmp_path: Path) -> None:
    bank = Treebank(path)
    symbols = protected_symbols([bank])
    assert {"(S", ")S", "(NP", ")NP", "(VP", ")VP", "*0", "*499"} < set(symbols)
    settings = {"vocab_size": 900, "shared": False, "protected": symbols, "rules": TREE_RULES}
    prepared = prepare(Preparation([bank], [bank], **settings), tmp_path / "prepared")
    target = prepared.vocabularies.target
    assert target.pieces(prepared.train.ids("target", 1).tolist())[-3::2] == ["(NP", ")NP"]
    assert prepared.counts["kept"] == 2


def test_the_trees_that_come_with_the_package_are_whole_and_kept_apart() -> None:
    counts = {"train": 13_208, "dev": 1_435, "test": 1_382}
    terms = (ASSETS / "LICENSE.txt").read_text(encoding="utf-8")
    sentences = {}
    for split, count in counts.items():
        trees = list(Treebank(ASSETS / f"{split}.mrg.xz").trees())
        assert len(trees) == count
        assert f"{count:,} trees" in terms
        assert all(4 <= len(tree.words()) <= 40 for tree in trees)
        sentences[split] = {" ".join(tree.words()).casefold() for tree in trees}
        assert len(sentences[split]) == count
    assert not sentences["train"] & (sentences["dev"] | sentences["test"])
    assert not sentences["dev"] & sentences["test"]
    assert "CC BY 3.0" in terms
