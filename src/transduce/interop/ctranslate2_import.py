"""Models that others have compiled for CTranslate2, and packages of Argos Translate: for translating only.

Their weights stay as they are, for CTranslate2 alone reads them; PyTorch has none. What is added is what a model
directory has besides: vocabularies, languages, a description. So they translate, are measured and served, and nothing
else.
"""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from transduce.bundle import Bundle, BundleConfig
from transduce.engines.compiled_file import MODEL, CompiledFile
from transduce.errors import BundleError
from transduce.interop.imported import Imported
from transduce.interop.renumber import Renumbering
from transduce.interop.vocabularies import TheirVocabulary
from transduce.interop.vocabulary_files import LANGUAGE_CODE, MARIAN_CODE, read_sentencepiece, read_text
from transduce.interop.weights import read_json
from transduce.storage import directory_aside, storage_errors, write_whole
from transduce.text.frame import SOURCE, TARGET
from transduce.text.languages import Direction

__all__ = ["import_ctranslate2", "is_ctranslate2"]

TOKENIZERS = ("sentencepiece.model", "sentencepiece.bpe.model", "spiece.model", "tokenizer.model", "spm.model")
"""Names under which one SentencePiece model for both sides is found."""
SIDES = ("source.spm", "target.spm"), ("source.model", "target.model")
"""Names under which there is one for each."""
WITHOUT_END = "sentencepiece.model"
"""Where Argos and OpenNMT keep theirs, whose sources do not end with a token unless the model says so."""
BLANKS = ("<pad>", "<blank>")
M2M_CODE = re.compile(r"__([a-z]{2,3})__")
NO_TEXT = re.compile(r"<.*>|madeupword\d+")
BYTE = re.compile(r"<0x[0-9A-F]{2}>")
MOST_UNPACKED, MOST_RATIO, MOST_FILES = 16 * 2**30, 200, 1000
"""Bytes of an archive's files, how much smaller they may be packed, and how many there may be."""


def is_ctranslate2(path: Path) -> bool:
    """Whether a path is a compiled model, a folder that Argos has unpacked, or a package of Argos."""
    if path.is_file():
        return path.suffix == ".argosmodel"
    return (path / MODEL).is_file() or (path / "model" / MODEL).is_file()


def import_ctranslate2(path: Path, output: Path, direction: Direction | None = None) -> Imported:
    """Make a model directory of a compiled model, for translating, measuring and serving.

    Its SentencePiece model (or one a side) lies in the same folder, or in the one above.
    """
    with _unpacked(path) as place:
        compiled = place if (place / MODEL).is_file() else place / "model"
        file = CompiledFile.read(compiled / MODEL)
        if file.kind != "TransformerSpec":
            raise BundleError(
                f"this is a compiled model, but not one that translates ({file.kind}).",
                where=str(compiled),
                remedy="Give an encoder-decoder.",
            )
        file.check_numbers()
        settings = read_json(compiled / "config.json") if (compiled / "config.json").is_file() else {}
        sides = _lists(compiled)
        for side, tensor in (("encoder/embeddings_0/weight", sides[0]), ("decoder/embeddings/weight", sides[-1])):
            if side in file.tensors and file.tensors[side].shape[0] < len(tensor):
                raise BundleError(
                    f"its vocabulary has {len(tensor):,} pieces, its matrix {file.tensors[side].shape[0]:,} rows.",
                    where=str(compiled),
                    remedy="Copy the model again, all files of it.",
                )
        processors, ends = _processors(compiled, place)
        vocabulary = _vocabulary(compiled, sides, processors)
        metadata = read_json(place / "metadata.json") if (place / "metadata.json").is_file() else {}
        spoken = Direction(*(_code(metadata.get(name)) for name in ("from_code", "to_code")))
        vocabulary = replace(vocabulary, spoken=spoken)
        chosen = vocabulary.direction(direction)
        numbers = [_numbers(each) for each in (vocabulary, vocabulary.apart or vocabulary)]
        vocabularies = vocabulary.vocabularies(numbers, chosen)
        config = _described(vocabulary, chosen, [each.size for each in numbers])
        notes = [
            "It translates, is measured and served. PyTorch has no weights of it: nothing is learned or looked into.",
            "What CTranslate2 cannot do (sampling, prefixes) is refused; at its length limit, a text is left as it is.",
        ]
        settings |= {"add_source_eos": bool(settings.get("add_source_eos", False)) or ends}
        card = _card(output.resolve().name, config, notes)
        files = vocabularies.files() | {"README.md": card.encode(), "scores.json": b"{}\n"}
        with storage_errors(output.parent):
            _write(output, compiled, settings, files, config)
        return Imported(
            Bundle.open(output), "model compiled for CTranslate2", file.parameters, vocabularies.source.size, notes
        )


def _write(
    output: Path, compiled: Path, settings: Mapping[str, Any], files: Mapping[str, bytes], config: BundleConfig
) -> None:
    """A model directory, aside and then renamed."""
    with directory_aside(output, ("config.json",), "a model") as aside:
        (aside / "ctranslate2").mkdir()
        for file in compiled.iterdir():
            if file.is_file() and (file.name == MODEL or "vocabulary" in file.name or file.name == "vmap.txt"):
                shutil.copyfile(file, aside / "ctranslate2" / file.name)
        write_whole(aside / "ctranslate2" / "config.json", json.dumps(settings, indent=2).encode())
        for name, contents in files.items():
            write_whole(aside / name, contents)
        write_whole(aside / "config.json", json.dumps(asdict(config), ensure_ascii=False, indent=2).encode())


def _lists(compiled: Path) -> list[list[str]]:
    """The pieces of both sides, or of each."""
    for names in (("shared_vocabulary",), ("source_vocabulary", "target_vocabulary")):
        for ending in ("json", "txt"):
            paths = [compiled / f"{name}.{ending}" for name in names]
            if all(path.is_file() for path in paths):
                return [_pieces(path) for path in paths]
    raise BundleError(
        "it has no vocabulary: neither a shared one nor one a side.",
        where=str(compiled),
        remedy="Copy the model again.",
    )


def _pieces(path: Path) -> list[str]:
    text = read_text(path)
    try:
        found = json.loads(text) if path.suffix == ".json" else text.removesuffix("\n").split("\n")
    except (ValueError, RecursionError) as error:
        raise BundleError("it is not readable as JSON.", where=str(path), remedy="Copy it again.") from error
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise BundleError("it is not a list of pieces.", where=str(path), remedy="Copy it again.")
    if len(set(found)) != len(found):
        raise BundleError("it has the same piece twice.", where=str(path), remedy="Copy it again.")
    return found


def _processors(*places: Path) -> tuple[dict[str, dict[str, Any]], bool]:
    """How texts are cut, and whether a source ends with a token that the compiled model does not add itself."""
    for place in (*places, places[0].parent):
        for names in SIDES:
            if all((place / name).is_file() for name in names):
                return dict(
                    zip(("source", "target"), (read_sentencepiece(place / n) for n in names), strict=True)
                ), True
        for name in TOKENIZERS:
            if (place / name).is_file():
                return {"both": read_sentencepiece(place / name)}, name != WITHOUT_END
    raise BundleError(
        "there is no SentencePiece model beside it, so texts cannot be cut into its pieces.",
        where=str(places[0]),
        remedy=f"Copy it there, under one of these names: {', '.join((*TOKENIZERS, *SIDES[0]))}.",
    )


def _vocabulary(compiled: Path, sides: list[list[str]], processors: Mapping[str, Mapping[str, Any]]) -> TheirVocabulary:
    found = []
    for side, pieces in zip(("source", "target"), (sides[0], sides[-1]), strict=True):
        ids = {piece: index for index, piece in enumerate(pieces)}
        for name in ("</s>", "<unk>"):
            if name not in ids:
                raise BundleError(f"its vocabulary has no {name}.", where=str(compiled), remedy="Not known here.")
        languages, before_source, before_target = _languages(ids)
        special = {index for piece, index in ids.items() if NO_TEXT.fullmatch(piece) and not BYTE.fullmatch(piece)}
        own = processors if len(sides) == 1 else {"both": processors.get("both") or processors[side]}
        found.append(
            TheirVocabulary(
                pieces,
                frozenset(special | set(languages.values())),
                ids["</s>"],
                lambda _, own=own: own,  # type: ignore[misc]
                pad=next((ids[name] for name in BLANKS if name in ids), None),
                unknown=ids["<unk>"],
                languages=languages,
                before_source=before_source,
                before_target=before_target,
            )
        )
    return found[0] if len(sides) == 1 else replace(found[0], apart=found[1])


def _languages(ids: Mapping[str, int]) -> tuple[dict[str, int], tuple[str, ...], tuple[str, ...]]:
    """The codes of a vocabulary's languages, and where they stand: before sources, before targets."""
    for form, before_source, before_target in (
        (M2M_CODE, (SOURCE,), (TARGET,)),
        (LANGUAGE_CODE, (SOURCE,), (TARGET,)),
        (MARIAN_CODE, (TARGET,), ()),
    ):
        matches = {piece: match for piece in ids if (match := form.fullmatch(piece))}
        if len(matches) > 1:
            codes = {match.group(match.lastindex or 0): ids[piece] for piece, match in matches.items()}
            return codes, before_source, before_target
    return {}, (), ()


def _numbers(vocabulary: TheirVocabulary) -> Renumbering:
    start = vocabulary.names.index("<s>") if "<s>" in vocabulary.names else vocabulary.eos
    return Renumbering.of(
        len(vocabulary.names), pad=vocabulary.pad, start=start, eos=vocabulary.eos, unknown=vocabulary.unknown
    )


def _described(vocabulary: TheirVocabulary, direction: Direction, sizes: list[int]) -> BundleConfig:
    languages: list[str] = []
    if TARGET in (*vocabulary.before_source, *vocabulary.before_target):
        languages = sorted(vocabulary.languages, key=lambda language: language != direction.target)
    return BundleConfig(
        architecture={"vocab_size": sizes[0], "target_vocab_size": None if vocabulary.apart is None else sizes[1]},
        source_language=direction.source,
        target_language=direction.target,
        target_languages=languages,
        decoding={"length_penalty": "power", "alpha": 1.0},
    )


def _card(name: str, config: BundleConfig, notes: list[str]) -> str:
    direction = " → ".join(each or "?" for each in (config.source_language, config.target_language))
    lines = [
        "It was compiled for CTranslate2 elsewhere; weights and results are those of its makers.",
        f"Languages: {direction}.",
        "Licence: not stated; ask where you have it from.",
        *notes,
    ]
    listed = "\n".join(f"- {line}" for line in lines)
    return f"# {name}\n\n{listed}\n\nState here where it came from and who made it.\n"


def _code(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


@contextmanager
def _unpacked(path: Path) -> Iterator[Path]:
    """The folder of a model; of an archive, one that is there for as long as it is needed."""
    if path.is_dir():
        yield path
        return
    with TemporaryDirectory() as folder:
        try:
            with zipfile.ZipFile(path) as archive:
                for member in _members(path, archive):
                    target = Path(folder, *PurePosixPath(member.filename).parts[1:])
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with archive.open(member) as source, target.open("wb") as file:
                        shutil.copyfileobj(source, file)
        except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, OSError) as error:
            raise BundleError(
                "this is no package, or a damaged one.", where=str(path), remedy="Copy it again."
            ) from error
        yield Path(folder)


def _members(path: Path, archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """The files of a package that are read, none of which is larger than it can be or leads elsewhere."""
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    for entry in entries:
        parts = PurePosixPath(entry.filename).parts
        if entry.filename.startswith("/") or ".." in parts or "\\" in entry.filename or ":" in entry.filename:
            raise BundleError(
                f"the package has a file that would be written elsewhere: {entry.filename!r}.",
                where=str(path),
                remedy="Do not use it.",
            )
    sizes = sum(entry.file_size for entry in entries), sum(entry.compress_size for entry in entries)
    if len(entries) > MOST_FILES or sizes[0] > min(MOST_UNPACKED, MOST_RATIO * (sizes[1] + 2**16)):
        raise BundleError(
            f"unpacked, its {len(entries):,} files would have {sizes[0] / 1e6:,.0f} MB, of {sizes[1] / 1e6:,.1f} MB.",
            where=str(path),
            remedy="Do not use it: no model is packed so well.",
        )
    return [entry for entry in entries if _is_wanted(PurePosixPath(entry.filename).parts)]


def _is_wanted(parts: tuple[str, ...]) -> bool:
    inside = parts[1:]
    return inside in (("metadata.json",), ("sentencepiece.model",)) or (len(inside) == 2 and inside[0] == "model")
