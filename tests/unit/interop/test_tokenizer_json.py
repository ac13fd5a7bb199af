"""A tokenizer.json that is made of SentencePiece cuts texts as that does, and puts them together again."""

from __future__ import annotations

import pytest

from transduce.data.builtin import builtin_corpus
from transduce.errors import InputError
from transduce.interop.sentencepiece_file import SentencePieceFile
from transduce.interop.tokenizer_json import framed, sentencepiece_tokenizer
from transduce.text.tokenizer import MASK, SubwordKind, Tokenizer

PAIRS = list(builtin_corpus("tatoeba-en-de", "dev").pairs())[:400]
TEXTS = [text for pair in PAIRS for text in (pair.source, pair.target)]
ODD = [
    "", "   ", "  a  b\tc\n d ", "emoji 🙂 你好", "<br>x y<br>z", "x<br>", "a▁b", "e\u0301", "\ufeffa\u00a0b\u2003c",
    "Straße{name}s", "aaaa bbbb cccc aaaaaaaa", "one\r\ntwo\rthree\n\nfour",
]  # fmt: skip


@pytest.mark.parametrize("documents", [False, True])
@pytest.mark.parametrize("kind", ["bpe", "unigram", "char"])
def test_it_cuts_as_sentencepiece_does(kind: SubwordKind, documents: bool) -> None:
    ours = Tokenizer.learn(TEXTS, 700, kind, ["<br>", "{name}"], [MASK, "<2de>"], documents)
    file = SentencePieceFile.parse(ours.model)
    assert [piece.text for piece in file.pieces] == ours.all_pieces()
    assert (file.method, file.space_before) == (kind, not documents)
    special = {piece: index for index, piece in enumerate(ours.all_pieces()[:6])}
    assert [*special] == ["<pad>", "<s>", "</s>", "<unk>", MASK, "<2de>"]
    ids = {piece: index for index, piece in enumerate(ours.all_pieces()) if piece not in special}
    theirs = sentencepiece_tokenizer(file, ids, special, "<unk>", MASK, normalises=True)
    framed(theirs, ["<2de>"], ["</s>"])
    for text in [*TEXTS, *ODD]:
        row = ours.encode_document(text) if documents else ours.encode(text)
        assert theirs.encode(text).ids == [special["<2de>"], *row, special["</s>"]]
        assert theirs.decode(row) == ours.decode(row)


@pytest.mark.parametrize("contents", [b"nothing of the kind", b"\x0a\xff\xff\xff\xff\x0fab", b"\x0a\x03\x12\x01"])
def test_other_files_are_refused(contents: bytes) -> None:
    with pytest.raises(InputError, match="SentencePiece"):
        SentencePieceFile.parse(contents)
