"""A vocabulary as a `tokenizer.json`, which Hugging Face's tokenizers read: made of SentencePiece, or given back.

Of SentencePiece, everything is said in their words: our normalisation, the space before a text, symbols that are never
split, merges in the order of the pieces' scores, bytes for what has no piece.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from transduce.errors import ConfigError
from transduce.interop.sentencepiece_file import SentencePieceFile
from transduce.text.normalise import SPACE_MARK

__all__ = ["framed", "sentencepiece_tokenizer"]

BLANKS = r"[\p{Cc}\p{Zl}\p{Zp}\p{Zs}\x{feff}]"
"""What our normalisation takes for a space."""
UNUSED = "<unused {}>"


def sentencepiece_tokenizer(
    file: SentencePieceFile,
    ids: Mapping[str, int],
    special: Mapping[str, int],
    unknown: str,
    mask: str | None = None,
    normalises: bool = False,
) -> Any:
    """A tokenizer that cuts texts as SentencePiece does.

    `ids` are those of its pieces, `special` those of what is no text, the mask among it; `unknown` is one of these.
    With `normalises`, texts go through our own rules first.
    """
    import tokenizers

    tokenizer = tokenizers.Tokenizer(_model(file, ids, special, unknown))
    documents = normalises and not file.space_before
    tokenizer.normalizer = _normalizer(file, normalises, documents)
    tokenizer.pre_tokenizer = _pre_tokenizer(file, ids)
    tokenizer.decoder = _decoder(file)
    tokenizer.add_special_tokens(
        [
            tokenizers.AddedToken(name, special=True, normalized=False, lstrip=name == mask)
            for name in sorted(special, key=special.__getitem__)
        ]
    )
    return tokenizer


def framed(tokenizer: Any, before: Sequence[str], after: Sequence[str]) -> None:
    """Let a tokenizer put these around each text."""
    from tokenizers import processors

    ids = {name: tokenizer.token_to_id(name) for name in (*before, *after)}
    if not ids:
        tokenizer.post_processor = None
        return
    single = [*before, "$A", *after]
    pair = [*single, "$B:1", *(f"{name}:1" for name in after)]
    tokenizer.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=[*ids.items()])


def _model(file: SentencePieceFile, ids: Mapping[str, int], special: Mapping[str, int], unknown: str) -> Any:
    from tokenizers import models

    numbers = {**ids, **special}
    size = max(numbers.values()) + 1
    scores = {piece.text: piece.score for piece in file.pieces}
    if file.method == "word":
        raise ConfigError("the vocabulary is of whole words, which has no counterpart there.", remedy="Use BPE.")
    if file.method == "unigram":
        names = [UNUSED.format(index) for index in range(size)]
        for name, index in numbers.items():
            names[index] = name
        # What is no text has the score 0, which changes nothing: unknown characters cost ten less than the least.
        vocabulary = [(name, scores.get(name, 0.0) if name in ids else 0.0) for name in names]
        return models.Unigram(vocabulary, unk_id=numbers[unknown], byte_fallback=file.falls_back_to_bytes)
    return models.BPE(
        vocab=dict(numbers),
        merges=_merges(file, ids) if file.method == "bpe" else [],
        unk_token=unknown,
        fuse_unk=True,
        byte_fallback=file.falls_back_to_bytes,
        ignore_merges=any(piece.protected for piece in file.pieces),  # a symbol stands alone and has no merges
    )


def _merges(file: SentencePieceFile, ids: Mapping[str, int]) -> list[tuple[str, str]]:
    """Every two pieces that make a third, the best third first: SentencePiece merges what has the best score."""
    scores = {piece.text: piece.score for piece in file.pieces if piece.learned and piece.text in ids}
    found = []
    for text, score in scores.items():
        cuts = ((text[:place], text[place:]) for place in range(1, len(text)))
        found += [
            (-score, ids[left], ids[right], left, right) for left, right in cuts if {left, right} <= scores.keys()
        ]
    return [(left, right) for *_, left, right in sorted(found)]


def _normalizer(file: SentencePieceFile, normalises: bool, documents: bool) -> Any:
    from tokenizers import Regex
    from tokenizers.normalizers import NFC, Precompiled, Replace, Sequence, Strip

    if documents:
        return Sequence([Replace("\r\n", "\n"), Replace("\r", "\n"), Replace(SPACE_MARK, "_")])
    steps: list[Any] = []
    if normalises:
        steps += [Replace(SPACE_MARK, "_"), NFC(), Replace(Regex(BLANKS), " ")]
    if file.rules:
        steps.append(Precompiled(file.rules))
    if normalises or file.single_spaces:  # a single space at the beginning is the one that is read before a text
        steps += [Replace(Regex(" {2,}"), " "), Strip(left=not file.space_before, right=True)]
    return Sequence(steps)


def _pre_tokenizer(file: SentencePieceFile, ids: Mapping[str, int]) -> Any:
    from tokenizers.pre_tokenizers import Metaspace, Sequence, Split

    words = all(SPACE_MARK not in piece[1:] for piece in ids)  # then no piece goes beyond a word
    spaces = Metaspace(SPACE_MARK, prepend_scheme="first" if file.space_before else "never", split=words)
    # Symbols that are one the beginning of another: the longest first.
    symbols = sorted((piece.text for piece in file.pieces if piece.protected), key=len, reverse=True)
    if not symbols:
        return spaces
    from tokenizers import Regex

    whole = "|".join("".join(f"\\x{{{ord(letter):x}}}" for letter in symbol) for symbol in symbols)
    return Sequence([Metaspace(SPACE_MARK, spaces.prepend_scheme, split=False), Split(Regex(whole), "isolated")])


def _decoder(file: SentencePieceFile) -> Any:
    from tokenizers.decoders import ByteFallback, Fuse, Replace, Sequence, Strip

    steps: list[Any] = [Replace(SPACE_MARK, " "), *([ByteFallback()] if file.falls_back_to_bytes else []), Fuse()]
    return Sequence([*steps, Strip(" ", 1, 0)] if file.space_before else steps)
