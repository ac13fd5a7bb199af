"""Text in, text out: what most users need of all this."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from transduce.bundle import Bundle, find_model
from transduce.confidence import Confidence, Signs, mean_confidence
from transduce.errors import BundleError, ConfigError, InputError, nearest
from transduce.text import normalise
from transduce.text.languages import Direction
from transduce.text.sentences import segments
from transduce.text.tokenizer import EOS

if TYPE_CHECKING:
    from transduce.attention_lens import AttentionMaps
    from transduce.attention_lens.alignment import Link
    from transduce.decoding import DecodingOptions, Hypothesis
    from transduce.engines.engine import Engine
    from transduce.engines.torch_engine import TorchEngine
    from transduce.text import Tokenizer

__all__ = ["Alternative", "EngineName", "Sentences", "Translation", "Translator"]

FIRST_TEXTS, NEXT_TEXTS = 32, 256
"""Texts that are begun together: at first few, so that no core waits for long; then enough to sort them by length."""

LONGEST = 400
"""Tokens from which a sentence is cut, at a space: models know none so long, and time grows with the square of it."""

EngineName = Literal["auto", "torch", "torch-int8", "ctranslate2"]


@dataclass(frozen=True)
class Alternative:
    """One way to translate a text."""

    text: str
    score: float
    """Log-probability over length penalty; sums over sentences where the text has several."""
    confidence: float | None = None
    """From 0 to 1, such as 0.7: sentences like this came out 70 % like a human's translation (chrF). Of several
    sentences the mean by length. None if the model was not calibrated, if words were drawn at random or tried by a
    shortlist only."""


@dataclass(frozen=True)
class Translation:
    """A text's translation."""

    text: str
    score: float
    alternatives: list[Alternative] = field(default_factory=list)
    """The n best, the translation itself first."""
    confidence: float | None = None
    """See Alternative."""


@dataclass(frozen=True)
class Sentences:
    """The sentences of some texts on their way through an engine."""

    sources: list[list[int]]
    """Ids of those that have words."""
    options: DecodingOptions
    vocabulary: Tokenizer
    spaces: list[list[str]]
    """For each text, the white space behind each of its sentences."""
    wanted: list[int]
    """Which of all sentences the sources are; the others have no words."""
    confidence: Confidence | None = None
    """What judges hypotheses by their signs."""

    def translations(self, decoded: Sequence[Sequence[Hypothesis]]) -> list[Translation]:
        """The texts' translations, of the hypotheses for the sources."""
        written = self.vocabulary.decode_batch(each.tokens for hypotheses in decoded for each in hypotheses)
        texts = map(normalise, written)  # a weak model may write the byte of a line feed
        found: list[list[Alternative]] = [[] for spaces in self.spaces for _ in spaces]
        for index, source, hypotheses in zip(self.wanted, self.sources, decoded, strict=True):
            found[index] = [Alternative(next(texts), each.score, self._confidence(source, each)) for each in hypotheses]
        translations, place = [], 0
        for spaces in self.spaces:
            translations.append(_joined(spaces, found[place : place + len(spaces)]))
            place += len(spaces)
        return translations

    def signs(self, decoded: Sequence[Sequence[Hypothesis]]) -> list[list[Signs]]:
        """For each text what its sentences' best hypotheses can be judged by, without any reference."""
        mine = {
            index: _signs(source, hypotheses[0])
            for index, source, hypotheses in zip(self.wanted, self.sources, decoded, strict=True)
        }
        found, place = [], 0
        for spaces in self.spaces:
            found.append([mine[index] for index in range(place, place + len(spaces)) if index in mine])
            place += len(spaces)
        return found

    def _confidence(self, source: list[int], hypothesis: Hypothesis) -> float | None:
        """All confidence comes from here.

        Whatever has a reason to doubt a hypothesis that its signs do not show, such as a guard that found it wanting,
        lowers it here.
        """
        return self.confidence.of(_signs(source, hypothesis)) if self.confidence else None


class Translator:
    """A loaded model.

    >>> translator = Translator.load("my-model")
    >>> translator.translate("How are you?").text
    """

    def __init__(self, bundle: Bundle, engine: EngineName | Engine = "auto", shortlist: bool = False) -> None:
        self.bundle = bundle
        self.vocabularies = bundle.vocabularies()
        self.engine = self._chosen(engine, shortlist) if isinstance(engine, str) else engine

    @classmethod
    def load(cls, model: str | Path, engine: EngineName = "auto", shortlist: bool = False) -> Translator:
        """Load a model directory, or a built-in model by name, such as "en-de".

        `auto` is CTranslate2 where the model has been compiled for it, which is faster and needs no PyTorch;
        `torch-int8` is PyTorch with faster, less exact arithmetic. With `shortlist` CTranslate2 tries only likely
        words, which is faster still.
        """
        return cls(Bundle.open(find_model(model)), engine, shortlist)

    @cached_property
    def torch_engine(self) -> TorchEngine:
        """The model in PyTorch, loaded when it is first needed."""
        from transduce.engines.torch_engine import TorchEngine

        return TorchEngine(self.bundle.model())

    @property
    def path(self) -> Path:
        """The model's directory."""
        return self.bundle.path

    @overload
    def translate(self, text: str, to: str | None = None, **options: Any) -> Translation: ...
    @overload
    def translate(self, text: Sequence[str], to: str | None = None, **options: Any) -> list[Translation]: ...
    def translate(
        self, text: str | Sequence[str], to: str | None = None, **options: Any
    ) -> Translation | list[Translation]:
        """Translate a text, or a list of texts in one go; `options` are those of DecodingOptions, such as beam=4.

        `to` chooses the language of a model that knows several. Long texts are cut into sentences and put together
        with their own spacing. An empty text stays empty.
        """
        if isinstance(text, str):
            return self.begin([text], to, **options)()[0]
        return self.begin(text, to, **options)()

    def begin(self, texts: Sequence[str], to: str | None = None, **options: Any) -> Callable[[], list[Translation]]:
        """Start to translate texts; what is returned gives the translations when called.

        CTranslate2 works meanwhile: whoever begins the next texts before asking for the last keeps all cores busy.
        """
        texts = list(texts)
        if not self.engine.works_ahead or options.get("prefix"):
            return self._begun(texts, to, options)
        # Some at a time: while workers are at the first, the next are read, and what is done is put together.
        starts = [0, *range(FIRST_TEXTS, len(texts), NEXT_TEXTS)]
        ends = [*starts[1:], len(texts)]
        begun = [self._begun(texts[start:end], to, options) for start, end in zip(starts, ends, strict=True)]
        return lambda: [translation for finish in begun for translation in finish()]

    @overload  # a str is a Sequence[str] too, but the first that fits counts
    def score(self, source: str, target: str, to: str | None = None) -> Hypothesis: ...  # type: ignore[overload-overlap]
    @overload
    def score(self, source: Sequence[str], target: Sequence[str], to: str | None = None) -> list[Hypothesis]: ...
    def score(
        self, source: str | Sequence[str], target: str | Sequence[str], to: str | None = None
    ) -> Hypothesis | list[Hypothesis]:
        """How likely the model finds given translations: `.log_probability`, `.token_scores`. Lists go in one go."""
        if isinstance(source, str) and isinstance(target, str):
            return self.score([source], [target], to)[0]
        if isinstance(source, str) or isinstance(target, str) or len(source) != len(target):
            raise InputError("sources and targets are not as many.", remedy="Give one target for each source.")
        sources = self.vocabularies.encode_sources(source, self._language(to))
        return self.torch_engine.score(sources, self.vocabularies.target.encode_batch(target))

    def attention(self, text: str, target: str | None = None, to: str | None = None, **options: Any) -> AttentionMaps:
        """Where the model looks while it translates a text, or while it would write the `target` that you give.

        Every layer and head, as labelled arrays: `.cross`, `.encoder`, `.decoder`, `.words()`, `.steps`. The text is
        taken as one sentence, however many it has, because attention does not cross from one to the next otherwise;
        more than 512 tokens are refused. `to` and `options` are those of `translate`.
        """
        from transduce.attention_lens.capture import capture, check_length

        for given in (text, target):
            if given is not None and not isinstance(given, str):
                raise InputError(f"the lens looks at one text, not at a {type(given).__name__}.", remedy="Give a str.")
        if target is not None and options:
            raise ConfigError(
                f"{', '.join(options)}: nothing is searched for where the target is given.",
                remedy="Leave the target or the options out.",
            )
        language = self._language(to)
        (source,) = self.vocabularies.encode_sources([text], language)
        if not source:
            raise InputError("there is no text to look at.", remedy="Give a sentence.")
        model = self.torch_engine.model
        check_length(model, "text", len(source) + 1)
        if target is None:
            written = self.engine.decode([source], self._options(options))[0][0].tokens
        else:
            written = [*self.vocabularies.target.encode(target), EOS]
        config = self.bundle.config
        languages = Direction(config.source_language, to or language or config.target_language)
        return capture(model, self.vocabularies, source, written, name=self.path.resolve().name, languages=languages)

    def align(
        self,
        texts: Sequence[str],
        translations: Sequence[Translation],
        sentences: Sentences,
        decoded: Sequence[Sequence[Hypothesis]],
    ) -> list[list[Link]]:
        """For each text, which words of its translation come from which of its own, as characters of either.

        Of the `sentences` of the texts and what was decoded for them; each text's best translation is aligned.
        """
        from transduce.attention_lens.alignment import Found, links
        from transduce.attention_lens.capture import capture

        model, tokens = self.torch_engine.model, iter(zip(sentences.sources, decoded, strict=True))
        wanted, place = set(sentences.wanted), 0
        found: list[list[Link]] = []
        for text, translation, spaces in zip(texts, translations, sentences.spaces, strict=True):
            source, target = Found(text), Found(translation.text)
            mine: list[Link] = []
            for index in range(place, place + len(spaces)):
                if index in wanted:
                    ids, hypotheses = next(tokens)
                    mine += links(capture(model, self.vocabularies, ids, hypotheses[0].tokens), source, target)
            place += len(spaces)
            found.append(mine)
        return found

    def _language(self, to: str | None) -> str | None:
        """The language whose tag is put before the sources; None where there is nothing to choose."""
        config = self.bundle.config
        default = [config.target_language] if config.target_language else []
        languages = config.target_languages or default
        if to is not None and to not in languages:
            raise ConfigError(
                f"the model does not translate into {to!r}.",
                where=str(self.path),
                remedy=nearest(to, languages) if languages else "It does not say into what it does: leave this out.",
            )
        return to or languages[0] if config.target_languages else None

    def sentences(self, texts: Sequence[str], to: str | None = None, **options: Any) -> Sentences:
        """The sentences of texts, ready for the engine, and the way from what it makes of them to translations.

        For whoever decides what is decoded when, such as a service; `translate` does all of it. A `prefix` may be text.
        """
        decoding = self._options(options)
        parts = [segments(text, self.bundle.config.source_language) for text in texts]
        encoded = iter(self.vocabularies.source.encode_batch([each.sentence for part in parts for each in part]))
        rows, spaces = [], []
        for part in parts:
            cut = [each for segment in part for each in self._cut(next(encoded), segment.space)]
            rows += [row for row, _ in cut]
            spaces.append([space for _, space in cut])
        ids = self.vocabularies.tagged(rows, self._language(to))
        wanted = [index for index, row in enumerate(ids) if row]
        if decoding.prefix:
            prefixes = self._prefixes(decoding, list(map(len, spaces)), ids)
            decoding = decoding.replace(prefix=[prefixes[index] for index in wanted])
        # It was learned from what is likely among all words: of what is drawn, or likely among few, it says nothing.
        comparable = self.engine.among_all and not decoding.sampling
        confidence = self.bundle.config.confidence if comparable else None
        sources = [ids[index] for index in wanted]
        return Sentences(sources, decoding, self.vocabularies.target, spaces, wanted, confidence)

    def _cut(self, row: list[int], space: str) -> list[tuple[list[int], str]]:
        """A sentence, in parts if it is too long for any model, and what stands behind each."""
        if len(row) <= LONGEST:
            return [(row, space)]
        parts = self.vocabularies.source.cut(row, LONGEST)
        between = [" " if self.vocabularies.source.begins_word(part) else "" for part in parts[1:]]
        return list(zip(parts, [*between, space], strict=True))

    def _begun(self, texts: list[str], to: str | None, overrides: dict[str, Any]) -> Callable[[], list[Translation]]:
        sentences = self.sentences(texts, to, **overrides)
        decode = self.engine.begin(sentences.sources, sentences.options)
        return lambda: sentences.translations(decode())

    def _chosen(self, engine: EngineName, shortlist: bool) -> Engine:
        compiled = self.path / "ctranslate2"
        if shortlist and engine.startswith("torch"):
            raise ConfigError(
                "PyTorch knows no shortlist.", remedy="Choose another engine, or leave the shortlist out."
            )
        if shortlist:
            engine = "ctranslate2"
        if engine == "torch" or (engine == "auto" and not compiled.is_dir()):
            return self.torch_engine
        if engine == "torch-int8":
            from transduce.engines.torch_engine import TorchEngine

            return TorchEngine(self.bundle.model(), int8=True)
        if not compiled.is_dir():
            raise BundleError(
                "the model is not compiled for CTranslate2.",
                where=str(self.path),
                remedy=f"Run: transduce export {self.path} -o {compiled}",
            )
        from transduce.engines.ctranslate2_engine import CTranslate2Engine

        return CTranslate2Engine(compiled, self.vocabularies, lambda: self.torch_engine, shortlist)

    def _options(self, overrides: dict[str, Any]) -> DecodingOptions:
        """The model's own decoding defaults, changed as asked; padding, tags and the like are never written."""
        changed = overrides | {"suppress": (*self._defaults.suppress, *overrides.get("suppress", ()))}
        if isinstance(prefix := overrides.get("prefix"), str):
            changed["prefix"] = self.vocabularies.target.encode(prefix)
        return self._defaults.replace(**changed)

    @cached_property
    def _defaults(self) -> DecodingOptions:
        from transduce.decoding import DecodingOptions

        try:
            defaults = DecodingOptions().replace(**self.bundle.config.decoding)
        except ConfigError as error:
            raise BundleError(error.what, where=str(self.path / "config.json"), remedy=error.remedy) from error
        return defaults.replace(suppress=(*self.vocabularies.target.unwritten, *defaults.suppress))

    @staticmethod
    def _prefixes(options: DecodingOptions, sentences: list[int], ids: list[list[int]]) -> list[list[int]]:
        """For each sentence of each text its prefix: a text's goes to its first sentence that has words."""
        prefixes: list[list[int]] = []
        for count, prefix in zip(sentences, options.prefixes(len(sentences)), strict=True):
            for _ in range(count):
                here = prefix if ids[len(prefixes)] else []
                prefixes.append(here)
                prefix = [] if here else prefix
        return prefixes


def _signs(source: list[int], hypothesis: Hypothesis) -> Signs:
    return Signs(hypothesis.log_probability, len(hypothesis.tokens), len(source) + 1)


def _joined(spaces: list[str], found: list[list[Alternative]]) -> Translation:
    """One translation of the alternatives for a text's sentences; the n-th best joins their n-th bests."""
    if spaces == [""] and found[0]:  # a sentence by itself
        return Translation(found[0][0].text, found[0][0].score, found[0], found[0][0].confidence)
    alternatives = []
    for rank in range(max(map(len, found), default=0) or 1):
        chosen = [each[min(rank, len(each) - 1)] if each else Alternative("", 0.0) for each in found]
        text = "".join(each.text + space for each, space in zip(chosen, spaces, strict=True))
        confidence = mean_confidence([(each.confidence, len(each.text)) for each in chosen])
        alternatives.append(Alternative(text, sum((each.score for each in chosen), 0.0), confidence))
    return Translation(alternatives[0].text, alternatives[0].score, alternatives, alternatives[0].confidence)
