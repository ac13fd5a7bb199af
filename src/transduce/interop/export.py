"""The doors out: a model in another tool's format, and the proof that it translates there as it does here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from transduce.bundle import Bundle, TaskName
from transduce.decoding import DecodingOptions
from transduce.engines.compiled_file import MODEL
from transduce.engines.onnx_engine import ENCODER
from transduce.errors import ConfigError
from transduce.interop import argos, ctranslate2, huggingface_card, huggingface_translation, onnx
from transduce.interop.huggingface_directory import Counterpart
from transduce.interop.huggingface_export import KNOWN_BY
from transduce.interop.parity import Logits, Parity, Translates, parity
from transduce.storage import check_replaceable
from transduce.text.languages import Direction, same_language
from transduce.translator import Translator

__all__ = ["Export", "Format"]

Format = Literal["ctranslate2", "argos", "huggingface", "onnx"]
EXPORTED = (MODEL, ENCODER, *KNOWN_BY)
"""Files by which a directory is known to be an export."""
WRITERS: tuple[TaskName, ...] = ("translation", "text-to-text", "parsing")
"""Tasks of encoder-decoders, for which all formats are."""


@dataclass(frozen=True)
class Export:
    """What is to be written of a model, for whom and where."""

    bundle: Bundle
    to: Format
    output: Path
    quantization: ctranslate2.Quantization | None = None
    """int8 unless the model is narrow; of ONNX float32 only."""
    languages: Direction = field(default_factory=Direction)
    """Those that the model does not say, or which of several it is to translate into."""

    def __post_init__(self) -> None:
        if self.to != "huggingface":
            self.bundle.require(*WRITERS)
        if self.to not in get_args(Format):
            raise ConfigError(f"{self.to!r} is no format.", remedy=f"Valid: {', '.join(get_args(Format))}.")
        if self.to in ("onnx", "huggingface") and self.quantization == "int8":
            raise ConfigError(f"for {self.to} a model is written in float32.", remedy="Leave out --quantization.")
        check_replaceable(self.output, EXPORTED, "an exported model")  # before the work

    @property
    def direction(self) -> Direction:
        """From which language into which."""
        config = self.bundle.config
        source = self.languages.source or config.source_language
        return Direction(source, self.target or self.languages.target or config.target_language)

    @property
    def target(self) -> str | None:
        """The language that is asked for, of a model that knows several."""
        known = self.bundle.config.target_languages
        if not known:
            return None
        chosen = same_language(self.languages.target, known) if self.languages.target else known[0]
        if chosen is None:
            raise ConfigError(
                f"the model does not translate into {self.languages.target!r}.", remedy=f"Valid: {', '.join(known)}."
            )
        return chosen

    def write(self) -> None:
        """Write it; what was there before is replaced when all is done."""
        if self.to == "huggingface":
            self._counterpart().write(self.output)
            return
        model, vocabularies = self.bundle.model(), self.bundle.vocabularies()
        if self.to == "ctranslate2":
            ctranslate2.compile_model(model, vocabularies, self.output, self.quantization)
        elif self.to == "onnx":
            onnx.export_onnx(model, vocabularies, self.output)
        else:
            card = self.bundle.path / "README.md"
            argos.write_argos(
                model,
                vocabularies,
                self.output,
                self.direction,
                tag=self.target,
                quantization=self.quantization,
                card=card.read_text(encoding="utf-8") if card.is_file() else "",
            )

    def verify(self, sources: Sequence[Any], references: Sequence[str] | None = None) -> Parity:
        """Give texts (or pictures) to both, compare, and write the report beside what was exported."""
        report = self._compared(sources, references)
        report.write(self.report)
        return report

    def _compared(self, sources: Sequence[Any], references: Sequence[str] | None) -> Parity:
        if self.bundle.config.task not in WRITERS:
            from transduce.interop.huggingface_kin import kin_parity

            return kin_parity(self._counterpart(), self.output, sources)
        ours = Translator(self.bundle, "torch")
        exported, logits, other_meanings, options = self._exported(ours)
        report = parity(
            ours, exported, sources, references, self.target, other_meanings=other_meanings, logits=logits, **options
        )
        if not isinstance(exported, huggingface_translation.HuggingFaceTranslator):
            return report
        ids = ours.vocabularies.encode_sources(list(sources), self.target)
        return replace(report, identical_ids=exported.same_ids(sources, ids, self.target))

    def _counterpart(self) -> Counterpart:
        return Counterpart.of(self.bundle, self.direction, self.target)

    @property
    def report(self) -> Path:
        """The file that `verify` writes."""
        if self.output.is_dir():
            return self.output / "parity.json"
        return self.output.with_name(f"{self.output.name}.parity.json")

    def _exported(self, ours: Translator) -> tuple[Translates, Logits | None, Mapping[str, str], dict[str, Any]]:
        """What translates there; its logits, if it shows them; what means something else; options to compare with."""
        if self.to == "ctranslate2":
            from transduce.engines.ctranslate2_engine import CTranslate2Engine

            engine = CTranslate2Engine(self.output, ours.vocabularies, lambda: ours.torch_engine)
            logits = partial(ctranslate2.greedy_logits, self.output, ours.vocabularies)
            return Translator(self.bundle, engine), logits, ctranslate2.OTHER_MEANINGS, {}
        if self.to == "onnx":
            from transduce.engines.onnx_engine import OnnxEngine

            logits = partial(onnx.greedy_logits, self.output)
            return Translator(self.bundle, OnnxEngine(self.output)), logits, onnx.OTHER_MEANINGS, {}
        if self.to == "huggingface":
            search = DecodingOptions().replace(**self.bundle.config.decoding)
            counterpart = self._counterpart()
            there = huggingface_translation.HuggingFaceTranslator(self.output, counterpart, search.beam, search.alpha)
            lost = huggingface_card.other_meanings(self.bundle.config.task, counterpart.vocabulary is None)
            return there, there.greedy_logits, lost, huggingface_translation.COMPARED
        return argos.ArgosPackage(self.output), None, argos.OTHER_MEANINGS, argos.ARGOS_OPTIONS
