"""A model as a package of Argos Translate, which LibreTranslate installs too: one file, `.argosmodel`.

It is an archive of a compiled model, a SentencePiece model, what finds sentences and a description. Argos calls
CTranslate2 in one way only, so what its call leaves out is put into the compiled model: the end of the source, the tag
of the target language, and that padding and tags are never written.
"""

from __future__ import annotations

import base64
import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from transduce.errors import ConfigError, InputError
from transduce.interop.argos_sentences import sentence_model
from transduce.interop.ctranslate2 import Quantization, compile_model
from transduce.model import Transformer
from transduce.storage import write_whole
from transduce.text import Vocabularies
from transduce.text.foreign import ForeignTokenizer
from transduce.text.language_names import language_name
from transduce.text.languages import Direction
from transduce.text.tokenizer import UNKNOWN
from transduce.translation import Translation

__all__ = ["ARGOS_OPTIONS", "OTHER_MEANINGS", "ArgosPackage", "write_argos"]

ARGOS_VERSION = "1.10"
"""The first that finds sentences without a model of its own for that in the package."""
ARGOS_OPTIONS: dict[str, Any] = {
    "beam": 4, "length_penalty": "power", "alpha": 0.2, "min_length": 1, "guard": False
}  # fmt: skip
"""What Argos asks of a model, in our words."""
LONGEST = 256
"""Tokens that CTranslate2 writes at most, unless told otherwise."""

OTHER_MEANINGS = {
    "length_penalty": "Argos divides by |Y|^0.2; ours, the paper's, is ((5+|Y|)/6)^0.6.",
    "max_length": f"Argos lets every sentence have {LONGEST} tokens, ours the source's length and 50 more.",
    "precision": "Argos computes in int8 where the machine can, whatever the package holds, unless "
    "ARGOS_COMPUTE_TYPE=float32 is set.",
    "guards": "Nothing is looked at: loops, lost numbers and tags, glossaries and confidence stay here.",
    "sentences": "Argos cuts texts by a few rules that the package brings along, transduce by those of the language.",
    "normalisation": "Argos reads text as it is; transduce makes it NFC with plain spaces first.",
    "underscores": "Argos writes _ as a space.",
}
"""What is otherwise there, and cannot be put into the package."""


def write_argos(
    model: Transformer,
    vocabularies: Vocabularies,
    output: Path,
    languages: Direction,
    *,
    tag: str | None = None,
    quantization: Quantization | None = None,
    card: str = "",
) -> None:
    """Write a package, aside and then renamed; `tag` is the target language where the model knows several."""
    if languages.source is None or languages.target is None:
        raise ConfigError(
            "a package says from which language it translates into which, and the model does not.",
            remedy="Give --languages, such as en-de.",
        )
    if output.is_dir():
        raise InputError(
            "a package is one file, and this is a directory.",
            where=str(output),
            remedy=f"Use: -o {output / f'{languages.source}-{languages.target}.argosmodel'}",
        )
    name = f"translate-{languages.source}_{languages.target}-1_0"
    metadata = {
        "package_version": "1.0",
        "argos_version": ARGOS_VERSION,
        "from_code": languages.source,
        "from_name": language_name(languages.source),
        "to_code": languages.target,
        "to_name": language_name(languages.target),
    }
    start = vocabularies.target.pieces(vocabularies.start(tag))
    if len(start) > 1:
        raise ConfigError(
            "Argos can begin a translation with one token, and this model wants more.",
            remedy="Export it for CTranslate2 instead.",
        )
    metadata |= {"target_prefix": start[0]} if start else {}
    with TemporaryDirectory() as folder:
        compiled = Path(folder) / "model"
        compile_model(
            model, vocabularies, compiled, quantization,
            before_source=_piece_before(vocabularies, tag), ends_source=True, unwritten=vocabularies.target.unwritten,
        )  # fmt: skip
        contents = {f"model/{file.name}": file.read_bytes() for file in sorted(compiled.iterdir())}
    contents |= {
        "metadata.json": (json.dumps(metadata, ensure_ascii=True, indent=2) + "\n").encode(),
        "sentencepiece.model": _sentencepiece(vocabularies),
        "minisbd/sentences.onnx": sentence_model(),
        "README.md": card.encode("ascii", "xmlcharrefreplace"),  # read there in whatever encoding the system has
    }
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path, content in contents.items():
            file.writestr(zipfile.ZipInfo(f"{name}/{path}"), content, zipfile.ZIP_DEFLATED)  # of no date: reproducible
    output.parent.mkdir(parents=True, exist_ok=True)
    write_whole(output, archive.getvalue())


class ArgosPackage:
    """A package that translates as Argos has it do, for comparing; sentences are given one by one.

    `compute_type` is Argos's setting of that name.
    """

    def __init__(self, path: Path, compute_type: str = "auto") -> None:
        import ctranslate2
        import sentencepiece

        with TemporaryDirectory() as folder, zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
            (inside,) = Path(folder).iterdir()
            contents = (inside / "sentencepiece.model").read_bytes()
            self._tokenizer = sentencepiece.SentencePieceProcessor(model_proto=contents)
            self._prefix = json.loads((inside / "metadata.json").read_bytes()).get("target_prefix", "")
            self._translator = ctranslate2.Translator(
                str(inside / "model"), device="cpu", intra_threads=1, compute_type=compute_type
            )

    def translate(self, text: Sequence[str], to: str | None = None, **options: Any) -> list[Translation]:
        """Translate sentences; `to` and `options` are those of Argos, whatever is asked for."""
        results = self._translator.translate_batch(
            [self._tokenizer.encode(each, out_type=str) for each in text],
            target_prefix=[[self._prefix]] * len(text) if self._prefix else None,
            replace_unknowns=True,
            max_batch_size=32,
            batch_type="tokens",
            beam_size=ARGOS_OPTIONS["beam"],
            length_penalty=ARGOS_OPTIONS["alpha"],
            return_scores=True,
        )
        return [Translation(self._text(result.hypotheses[0]), result.scores[0]) for result in results]

    def _text(self, pieces: list[str]) -> str:
        text: str = self._tokenizer.decode_pieces(pieces)
        return text.replace("▁", " ").replace("_", " ").removeprefix(self._prefix).removeprefix(" ")


def _sentencepiece(vocabularies: Vocabularies) -> bytes:
    """What cuts sources, in SentencePiece's form, which is the only one that Argos reads of what we have."""
    contents = vocabularies.source.model
    if not isinstance(vocabularies.source, ForeignTokenizer):
        return contents
    processors = json.loads(contents)["processors"]
    chosen = processors.get("both") or processors["source"]
    if chosen["kind"] != "sentencepiece":
        raise ConfigError(
            f"Argos cuts texts by SentencePiece, and this model by {chosen['kind']}.",
            remedy="Export it for CTranslate2 instead.",
        )
    return base64.b64decode(chosen["model"])


def _piece_before(vocabularies: Vocabularies, language: str | None) -> str | None:
    """The piece before a source that is to become a language; None if there is none."""
    marked = vocabularies.tagged([[UNKNOWN]], language)[0]
    if marked[-1] != UNKNOWN or len(marked) > 2:
        raise ConfigError(
            "Argos can put one token before a source and none behind it, and this model wants more.",
            remedy="Export it for CTranslate2 instead.",
        )
    return vocabularies.source.pieces(marked)[0] if len(marked) == 2 else None
