"""Other people's vocabularies as they lie on the disk: Marian's, M2M-100's, SentencePiece files, `tokenizer.json`."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from transduce.errors import BundleError, InputError
from transduce.interop.renumber import Renumbering
from transduce.interop.vocabularies import TheirVocabulary
from transduce.interop.weights import read_json
from transduce.text.foreign.byte_level import readable
from transduce.text.foreign.processors import SentencePieces, read_tokenizer_json
from transduce.text.frame import SOURCE, TARGET
from transduce.text.languages import Direction

__all__ = ["read_sentencepiece", "read_text", "read_vocabulary"]

M2M_LANGUAGES = (
    "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu hy "
    "id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt ro ru "
    "sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu"
)
WMT21_LANGUAGES = "en ha is ja cs ru zh de"
"""The languages whose codes stand behind the vocabulary of M2M-100 and of the WMT21 models, in their order."""
LANGUAGE_CODE = re.compile(r"(?P<code>[a-z]{2,3}_[A-Z][A-Za-z]+)|__(?P<m2m>[a-z]{2,3})__")
"""The codes of mBART and NLLB, en_XX and twi_Latn, and of M2M-100, __en__."""
GENERAL = "PreTrainedTokenizerFast"
"""The class of tokenizers that are all in their tokenizer.json."""
MARIAN_CODE = re.compile(r">>([^<>]+)<<")
FAIRSEQ_FIRST = ("<s>", "<pad>", "</s>", "<unk>")
MOST_TEXT = 256 * 2**20
"""Bytes of a vocabulary's file."""


def read_vocabulary(directory: Path, config: Mapping[str, Any]) -> TheirVocabulary:
    """The vocabulary of a Hugging Face directory, whose config.json says this."""
    settings = read_json(directory / "tokenizer_config.json") if (directory / "tokenizer_config.json").is_file() else {}
    kind = str(config.get("model_type"))
    if kind == "marian" or (directory / "source.spm").is_file():  # which other kinds of model may have too
        return _marian(directory, settings)
    if (directory / "tokenizer.json").is_file():
        return _tokenizer_json(directory, kind, config, settings)
    if kind == "m2m_100" and (directory / "vocab.json").is_file():
        return _m2m(directory, settings)
    if kind == "t5" and (directory / "spiece.model").is_file():
        return _t5(directory, settings)
    raise BundleError(
        "its tokenizer is in none of the files that are read: tokenizer.json, or SentencePiece's.",
        where=str(directory),
        remedy='Save it once more: AutoTokenizer.from_pretrained("…").save_pretrained("…") writes a tokenizer.json.',
    )


def read_text(path: Path) -> str:
    """The text of a file, which is small enough to be one of a vocabulary's."""
    try:
        if path.stat().st_size > MOST_TEXT:
            raise BundleError(
                f"it has more than {MOST_TEXT >> 20} MB.", where=str(path), remedy="Is it the right file?"
            )
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise BundleError("there is no such file.", where=str(path), remedy="Copy the model again.") from error
    except (OSError, ValueError) as error:
        raise BundleError("it is not readable as text.", where=str(path), remedy="Copy it again.") from error


# One function a kind


def _marian(directory: Path, settings: Mapping[str, Any]) -> TheirVocabulary:
    processors = {side: read_sentencepiece(directory / f"{side}.spm") for side in ("source", "target")}
    spoken = Direction(_name(settings.get("source_lang")), _name(settings.get("target_lang")))
    names = _names(directory / "vocab.json")
    ids = {name: index for index, name in enumerate(names)}
    codes = {match.group(1): index for name, index in ids.items() if (match := MARIAN_CODE.fullmatch(name))}
    if len(codes) < 2 or settings.get("separate_vocabs"):
        codes = {}

    def described(side: str, names: Sequence[str], codes: Mapping[str, int]) -> TheirVocabulary:
        known = {name: index for index, name in enumerate(names)}
        return TheirVocabulary(
            names,
            _special(known, settings, ("eos_token", "unk_token", "pad_token")) | set(codes.values()),
            _needed(directory, known, str(_content(settings.get("eos_token")) or "</s>")),
            (lambda _: processors) if side == "both" else (lambda _: {"both": processors[side]}),
            pad=known.get(str(_content(settings.get("pad_token")) or "<pad>")),
            unknown=_needed(directory, known, str(_content(settings.get("unk_token")) or "<unk>")),
            languages=codes,
            before_source=(TARGET,) if codes else (),
            spoken=spoken,
        )

    if not settings.get("separate_vocabs"):
        return described("both", names, codes)
    target = described("target", _names(directory / "target_vocab.json"), {})
    return replace(described("source", names, {}), apart=target)


def _m2m(directory: Path, settings: Mapping[str, Any]) -> TheirVocabulary:
    model = read_sentencepiece(directory / "sentencepiece.bpe.model")
    lists = {"m2m100": M2M_LANGUAGES, "wmt21": WMT21_LANGUAGES}
    chosen = str(settings.get("language_codes", "m2m100"))
    if chosen not in lists:
        raise BundleError(
            f"its language codes are those of {chosen!r}.", where=str(directory), remedy="Not known here."
        )
    names = _names(directory / "vocab.json")
    languages = {language: len(names) + place for place, language in enumerate(lists[chosen].split())}
    names += [f"__{language}__" for language in languages]
    ids = {name: index for index, name in enumerate(names)}
    return TheirVocabulary(
        names,
        frozenset({*languages.values(), *(ids[name] for name in FAIRSEQ_FIRST if name in ids)}),
        _needed(directory, ids, "</s>"),
        lambda numbers: {"both": {**model, "ids": numbers.theirs}},
        pad=ids.get("<pad>"),
        unknown=_needed(directory, ids, "<unk>"),
        languages=languages,
        before_source=(SOURCE,),
        before_target=(TARGET,),
        spoken=Direction(_name(settings.get("src_lang")) or "en", _name(settings.get("tgt_lang"))),
    )


def _t5(directory: Path, settings: Mapping[str, Any]) -> TheirVocabulary:
    import sentencepiece

    model = read_sentencepiece(directory / "spiece.model")
    processor = sentencepiece.SentencePieceProcessor(model_proto=base64.b64decode(model["model"]))
    names = [processor.id_to_piece(index) for index in range(processor.get_piece_size())]
    extra = settings.get("extra_ids", 100)
    if not isinstance(extra, int) or not 0 <= extra <= 10_000:
        raise BundleError(f"extra_ids={extra!r} cannot be.", where=str(directory / "tokenizer_config.json"))
    sentinels = range(len(names), len(names) + extra)
    names += [f"<extra_id_{number}>" for number in reversed(range(extra))]
    ids = {name: index for index, name in enumerate(names)}
    first = {name: ids.get(name) for name in ("<pad>", "<unk>")}
    eos = _needed(directory, ids, "</s>")
    special = {eos, *sentinels, *(index for index in first.values() if index is not None)}
    return TheirVocabulary(
        names,
        frozenset(special),
        eos,
        lambda numbers: {"both": {**model, "ids": numbers.theirs}},
        pad=first["<pad>"],
        unknown=first["<unk>"],
    )


def _tokenizer_json(
    directory: Path, kind: str, config: Mapping[str, Any], settings: Mapping[str, Any]
) -> TheirVocabulary:
    path = directory / "tokenizer.json"
    contents = read_text(path)
    try:
        tokenizer = read_tokenizer_json(contents)
    except InputError as error:
        raise BundleError(error.what, where=str(path), remedy=error.remedy) from error
    values = read_json(path)
    ids: dict[str, int] = tokenizer.get_vocab(with_added_tokens=True)
    size = max(ids.values(), default=-1) + 1
    if size > 16 * (len(ids) + 16):
        raise BundleError("its ids have gaps that no vocabulary has.", where=str(path), remedy="Copy it again.")
    names = [f"<unused {index}>" for index in range(size)]
    for name, index in ids.items():
        names[index] = name
    shown = _shown(names, values)
    special = {index for index, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    special |= {index for index, name in enumerate(names) if ids.get(name) != index}
    before, after = _around(tokenizer)
    codes = (
        (LANGUAGE_CODE.fullmatch(name) for name in sorted(ids, key=ids.__getitem__))
        if kind in ("m2m_100", "mbart")
        else ()
    )
    languages = {code["code"] or code["m2m"]: ids[code[0]] for code in codes if code}
    special |= set(languages.values())
    eos = _eos(path, ids, settings, after)
    clean_up = bool(settings.get("clean_up_tokenization_spaces")) or _type(values, "model") == "WordPiece"

    def described(numbers: Renumbering) -> Mapping[str, Mapping[str, Any]]:
        theirs = numbers.theirs
        return {"both": {"kind": "tokenizer.json", "tokenizer": contents, "ids": theirs, "clean_up": clean_up}}

    vocabulary = TheirVocabulary(
        shown,
        frozenset(special),
        eos,
        described,
        pad=ids.get(str(_content(settings.get("pad_token")) or "<pad>")),
        unknown=ids.get(str(_content(settings.get("unk_token")) or "<unk>")),
        languages=languages,
        mask=ids.get(str(_content(settings.get("mask_token")) or "<mask>")) if kind == "bert" else None,
        spoken=Direction(_name(settings.get("src_lang")), _name(settings.get("tgt_lang"))),
    )
    if languages:
        behind = "MBart50" not in str(settings.get("tokenizer_class")) if kind == "mbart" else _is_legacy(settings)
        if settings.get("tokenizer_class") == GENERAL:  # which has no ways of its own, so that its template counts
            behind = bool({*after} & {*languages.values()})
        if behind:
            return replace(vocabulary, lang_after_end=True, before_target=() if kind == "mbart" else (TARGET,))
        return replace(vocabulary, before_source=(SOURCE,), before_target=(TARGET,))
    forced = config.get("forced_bos_token_id")
    return replace(
        vocabulary,
        before_source=() if kind == "gpt2" else tuple(before),  # whose texts all start with the same token here
        before_target=(forced,) if isinstance(forced, int) and 0 <= forced < size else (),
    )


# What they have in common


def read_sentencepiece(path: Path) -> dict[str, Any]:
    """A SentencePiece file, found to be one, for a file of ours."""
    try:
        contents = path.read_bytes() if path.stat().st_size <= MOST_TEXT else b""
        SentencePieces(contents, [], frozenset())
    except FileNotFoundError as error:
        raise BundleError("there is no such file.", where=str(path), remedy="Copy the model again.") from error
    except InputError as error:
        raise BundleError(error.what, where=str(path), remedy=error.remedy) from error
    return {"kind": "sentencepiece", "model": base64.b64encode(contents).decode()}


def _names(path: Path) -> list[str]:
    """The pieces of a `vocab.json` by id."""
    found = read_json(path)
    if sorted(index for index in found.values() if type(index) is int) != list(range(len(found))):
        raise BundleError(
            f"its {len(found)} pieces have not the ids from 0 on, each once.", where=str(path), remedy="Copy it again."
        )
    return sorted(found, key=found.__getitem__)


def _content(token: Any) -> str | None:
    """A token, which is written by itself or with how it is to be treated."""
    found = token.get("content") if isinstance(token, dict) else token
    return found if isinstance(found, str) else None


def _special(ids: Mapping[str, int], settings: Mapping[str, Any], keys: Sequence[str]) -> frozenset[int]:
    usual = ("</s>", "<unk>", "<pad>")
    names = (_content(settings.get(key)) or name for key, name in zip(keys, usual, strict=True))
    return frozenset(ids[name] for name in names if name in ids)


def _needed(where: Path, ids: Mapping[str, int], name: str) -> int:
    if name not in ids:
        raise BundleError(f"its vocabulary has no {name}.", where=str(where), remedy="Copy the model again.")
    return ids[name]


def _name(language: Any) -> str | None:
    return language if isinstance(language, str) and language else None


def _around(tokenizer: Any) -> tuple[list[int], list[int]]:
    """What is put before and after a text of one letter."""
    plain, whole = (tokenizer.encode("a", add_special_tokens=each).ids for each in (False, True))
    for start in range(len(whole) - len(plain) + 1):
        if plain and whole[start : start + len(plain)] == plain:
            return whole[:start], whole[start + len(plain) :]
    return [], []


def _eos(path: Path, ids: Mapping[str, int], settings: Mapping[str, Any], after: Sequence[int]) -> int:
    """The id that ends a text: as its settings name it, or as its template has it."""
    for name in (_content(settings.get("eos_token")), _content(settings.get("sep_token")), "</s>", "[SEP]"):
        if name is not None and name in ids:
            return ids[name]
    if after:
        return after[0]
    raise BundleError("nothing in it ends a text.", where=str(path), remedy="Copy the model again.")


def _is_legacy(settings: Mapping[str, Any]) -> bool:
    return bool(settings.get("legacy_behaviour"))


def _type(values: Mapping[str, Any], part: str) -> str:
    found = values.get(part)
    return str(found.get("type")) if isinstance(found, dict) else ""


def _shown(names: Sequence[str], values: Mapping[str, Any]) -> list[str]:
    """Pieces as SentencePiece would write them, with ▁ for a space: bytes as text, and words that do not go on."""
    if "ByteLevel" in (_type(values, "decoder"), _type(values, "pre_tokenizer")):
        return readable(names)
    if _type(values, "model") == "WordPiece":
        return [name[2:] if name.startswith("##") else name if name.startswith("[") else f"▁{name}" for name in names]
    return list(names)
