"""Text in, text out: what most users need of all this."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from transduce.bundle import Bundle, find_model
from transduce.engines.choice import chosen_engine
from transduce.errors import BundleError, ConfigError, InputError, nearest
from transduce.guards import Glossary
from transduce.guards.draft import Assembly, Draft
from transduce.guards.guard import Guard
from transduce.guards.parts import find_parts
from transduce.guards.rounds import Sentences
from transduce.ranking import Candidates, Consensus, Ranking, WayBack, check_way_back
from transduce.text import normalise
from transduce.text.languages import Direction, same_language
from transduce.text.sentences import Segment, segments
from transduce.text.tokenizer import EOS
from transduce.translation import Alternative, Flag, Translation

if TYPE_CHECKING:
    from transduce.attention_lens import AttentionMaps
    from transduce.attention_lens.alignment import Link
    from transduce.decoding import DecodingOptions, Hypothesis
    from transduce.engines.engine import Engine, EngineName
    from transduce.engines.torch_engine import TorchEngine

__all__ = ["Alternative", "Flag", "Glossary", "Sentences", "Terms", "Translation", "Translator"]

FIRST_TEXTS, NEXT_TEXTS = 32, 256
"""Texts that are begun together: at first few, so that no core waits for long; then enough to sort them by length."""

Terms = Glossary | Mapping[str, str]
"""A glossary, or a dict of what is to become what."""


class Translator:
    """A loaded model.

    >>> translator = Translator.load("my-model")
    >>> translator.translate("How are you?").text
    """

    def __init__(
        self,
        bundle: Bundle,
        engine: EngineName | Engine = "auto",
        shortlist: bool = False,
        *,
        threads: int | None = None,
        back: Translator | None = None,
    ) -> None:
        """With so many `threads` of CTranslate2, else a core each; given, what is written does not depend on them.

        `back` is a translator of the other direction, which has a say; see `load`.
        """
        self.bundle = bundle
        self.back: Translator | None = None
        self.vocabularies = bundle.vocabularies()
        if back is not None:
            self.ask_back(back)
        if isinstance(engine, str):
            engine = chosen_engine(bundle, self.vocabularies, engine, lambda: self.torch_engine, shortlist, threads)
        self.engine = engine

    @classmethod
    def load(
        cls,
        model: str | Path,
        engine: EngineName = "auto",
        shortlist: bool = False,
        *,
        beside: Sequence[str | Path] = (),
        back: str | Path | None = None,
    ) -> Translator:
        """Load a built-in model by name, such as "en-de", or a model directory, such as "my-model" or "./en-de".

        `auto` is CTranslate2 where the model has been compiled for it, which is faster and needs no PyTorch;
        `torch-int8` is PyTorch with faster, less exact arithmetic; `onnx` is ONNX Runtime, for a model that has been
        exported for it. With `shortlist` CTranslate2 tries only likely words, which is faster still.

        Models `beside` it have a say in every word (an ensemble): those of the same training text and vocabulary, such
        as one of another seed. PyTorch runs them. The attention shown is the first one's.

        A model that leads `back`, such as "de-en" for "en-de", is asked how likely the source is given each hypothesis
        of the beam: what was left out or made up shows there.
        """
        return cls.together(Bundle.open(find_model(model)), beside, engine, shortlist, back)

    @classmethod
    def together(
        cls,
        bundle: Bundle,
        beside: Sequence[str | Path],
        engine: EngineName = "auto",
        shortlist: bool = False,
        back: str | Path | None = None,
    ) -> Translator:
        """A model with others beside it and one that leads back, if there are any; see `load`."""
        other = None if back is None else cls.load(back)
        if not beside:
            return cls(bundle, engine, shortlist, back=other)
        if shortlist or engine not in ("auto", "torch"):
            asked = "a shortlist" if shortlist else engine
            raise ConfigError(f"an ensemble is run by PyTorch, without {asked}.", remedy="Leave that out.")
        from transduce.engines.ensemble_engine import EnsembleEngine

        bundles = [bundle, *(Bundle.open(find_model(each)) for each in beside)]
        return cls(bundle, EnsembleEngine(bundles), back=other)

    @classmethod
    def between(cls, source: str, target: str, engine: EngineName = "auto") -> Translator:
        """Load the built-in model that translates from one language into another: `Translator.between("en", "twi")`."""
        from transduce.catalogue import model_between

        return cls(model_between(source, target).bundle, engine)

    @cached_property
    def torch_engine(self) -> TorchEngine:
        """The model in PyTorch, loaded when it is first needed."""
        from transduce.engines.torch_engine import TorchEngine

        return TorchEngine(self.bundle.model())

    def ask_back(self, other: Translator) -> None:
        """Let a translator of the other direction have a say from now on; see `load`."""
        check_way_back(self.bundle, other.bundle)
        self.back = other

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
        with their own spacing. An empty text stays empty. Numbers, addresses, tags and whatever stands between
        <keep> and </keep> come out as they were, and nothing is repeated or runs on (docs/guards.md); `.warnings` of
        a translation say where that was at the cost of the rest. A `glossary` (a dict or a Glossary) says what terms
        are to become; with guard=False you get what the model writes, as it is. With mbr=True it is not the most
        probable hypothesis of the beam (or of the samples) that is taken, but the one that most others agree with;
        with back=False a model that leads back is not asked.
        What is not given, or None, is as the model has it.
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
        if "glossary" in options:
            options["glossary"] = _glossary(options["glossary"])  # once for all
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
        from transduce.engines.ensemble_engine import EnsembleEngine

        language = self._language(to)
        sources = self.vocabularies.encode_sources(source, language)
        targets = self.vocabularies.target.encode_batch(target)
        engine = self.engine if isinstance(self.engine, EnsembleEngine) else self.torch_engine
        return engine.score(sources, targets, self.vocabularies.start(language))

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
            written = self._written(text, source, self._options(options, language), language)
        else:
            written = [*self.vocabularies.target.encode(target), EOS]
        config = self.bundle.config
        languages = Direction(config.source_language, language or config.target_language)
        name, start = self.path.resolve().name, self.vocabularies.start(language)
        return capture(model, self.vocabularies, source, written, name=name, languages=languages, start=start)

    def align(
        self, texts: Sequence[str], translations: Sequence[Translation], sentences: Sentences
    ) -> list[list[Link]]:
        """For each text, which words of its translation come from which of its own, as characters of either.

        Of the `sentences` of the texts, when they are done; each text's best translation is aligned.
        """
        from transduce.attention_lens.alignment import Found, links
        from transduce.attention_lens.capture import capture

        model = self.torch_engine.model
        found: list[list[Link]] = []
        for text, translation, decoded in zip(texts, translations, sentences.decoded(), strict=True):
            source, target = Found(text), Found(translation.text)
            maps = (capture(model, self.vocabularies, ids, tokens, start=sentences.start) for ids, tokens in decoded)
            found.append([link for each in maps for link in links(each, source, target)])
        return found

    def _language(self, to: str | None) -> str | None:
        """The language whose tag is put before the sources; None where there is nothing to choose."""
        config = self.bundle.config
        default = [config.target_language] if config.target_language else []
        languages = config.target_languages or default
        chosen = None if to is None else same_language(to, languages)
        if to is not None and chosen is None:
            raise ConfigError(
                f"the model does not translate into {to!r}.",
                where=str(self.path),
                remedy=nearest(to, languages) if languages else "It does not say into what it does: leave this out.",
            )
        return chosen or languages[0] if config.target_languages else None

    def sentences(
        self,
        texts: Sequence[str],
        to: str | None = None,
        *,
        guard: bool = True,
        glossary: Terms | None = None,
        mbr: bool | None = None,
        back: bool = True,
        **options: Any,
    ) -> Sentences:
        """The sentences of texts, ready for the engine, and the way from what it makes of them to translations.

        For whoever decides what is decoded when, such as a service; `translate` does all of it. A `prefix` may be text.
        """
        language = self._language(to)
        decoding = self._options(options, language)
        ranking = self._ranking(mbr, decoding, language, back)
        active = guard and decoding.brackets is None
        # It was learned from what this model finds likely among all words: of anything else it says nothing.
        comparable = self.engine.calibrated and not decoding.sampling
        guards = Guard(
            self.vocabularies,
            decoding,
            confidence=self.bundle.config.confidence if comparable else None,
            glossary=_glossary(glossary) if active else None,
            tags=sum(map(len, self.vocabularies.around_source(language))),
            numbers=self.bundle.config.keeps_numbers,
            active=active,
        )
        prefixes = decoding.prefixes(len(texts)) if decoding.prefix else [[]] * len(texts)
        assemblies = []
        for text, prefix in zip(texts, prefixes, strict=True):
            items: list[str | Draft] = []
            for sentence, space in self._segments(text, active):
                given = prefix if prefix and normalise(sentence) else []
                items += guards.items(sentence, prefix=given) if sentence else []
                items += [space] if space else []
                prefix = [] if given else prefix
            assemblies.append(Assembly(items))
        return Sentences(assemblies, self.vocabularies, language, guards, ranking)

    def _segments(self, text: str, whole_parts: bool) -> list[Segment]:
        """The sentences of a text; what must survive is never cut."""
        found = segments(text, self.bundle.config.source_language)
        if len(found) < 2 or not whole_parts or not (parts := find_parts(text)):
            return found
        joined: list[Segment] = []
        start = 0
        for segment in found:
            end = start + len(segment.sentence) + len(segment.space)
            if joined and any(part.start < start < part.end for part in parts):
                last = joined.pop()
                segment = Segment(last.sentence + last.space + segment.sentence, segment.space)
            joined.append(segment)
            start = end
        return joined

    def _begun(self, texts: list[str], to: str | None, overrides: dict[str, Any]) -> Callable[[], list[Translation]]:
        sentences = self.sentences(texts, to, **overrides)
        begun = [self.engine.begin(*batch) for batch in sentences.wanted()]

        def finish() -> list[Translation]:
            sentences.take([finished() for finished in begun])
            while batches := sentences.wanted():
                sentences.take([self.engine.decode(*batch) for batch in batches])
            return sentences.translations()

        return finish

    def _ranking(
        self, mbr: bool | None, decoding: DecodingOptions, language: str | None, back: bool = True
    ) -> Ranking | None:
        """What chooses among hypotheses: the way back; consensus, as asked or as the model has it; or their score."""
        several = (decoding.n_best if decoding.sampling else decoding.beam) > 1
        other = self.back if back else None
        for asked, what in ((mbr, "mbr=True"), (other is not None, "the way back")):
            if asked and not several:
                raise ConfigError(f"{what} needs several hypotheses to choose from.", remedy="Use beam=4 or more.")
        if other is not None:
            if mbr:
                raise ConfigError("mbr=True and the way back choose differently.", remedy="Leave out one of them.")
            check_way_back(self.bundle, other.bundle, language)
            source = self.bundle.config.source_language if other.bundle.config.target_languages else None
            return WayBack(other.engine, other.vocabularies, other._language(source))
        return Consensus() if several and (self.bundle.config.mbr if mbr is None else mbr) else None

    def _written(self, text: str, source: list[int], options: DecodingOptions, language: str | None) -> list[int]:
        """What is written of one source, as ids: what `translate` shows, before it is guarded."""
        ranking = self._ranking(None, options, language)
        found = self.engine.decode([source], options.replace(n_best=options.beam) if ranking else options)[0]
        if ranking is None:
            return found[0].tokens
        texts = self.vocabularies.target.decode_batch(each.tokens for each in found)
        ((best, *_),) = ranking.orders([Candidates(text, texts, [each.score for each in found], options.sampling)])
        return found[best].tokens

    def _options(self, overrides: dict[str, Any], language: str | None) -> DecodingOptions:
        """The model's own decoding defaults, changed as asked; padding, tags and the like are never written."""
        changed = overrides | {"suppress": (*self._defaults.suppress, *overrides.get("suppress", ()))}
        changed["start"] = self.vocabularies.start(language)
        if overrides.get("beam", 1) is None:  # the model's own, or as many as are wanted
            changed["beam"] = max(self._defaults.beam, overrides.get("n_best", 1))
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


def _glossary(terms: Terms | None) -> Glossary | None:
    return terms if terms is None or isinstance(terms, Glossary) else Glossary(terms)
