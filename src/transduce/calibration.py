"""Calibrating a model: translate a dev set as users will, and learn how far to trust such translations.

And before that, how long they should be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from transduce.bundle import Bundle
from transduce.confidence import Signs
from transduce.decoding import DecodingOptions, Hypothesis
from transduce.decoding.penalty import length_penalty
from transduce.evaluation import Calibration, calibration_of, cross_fitted, fit_confidence, quick_bleu, sentence_chrf
from transduce.storage import storage_errors
from transduce.translator import Translator

__all__ = ["calibrate", "choose_length_penalty", "measured_calibration"]

TEXTS_AT_ONCE = 512
"""Texts that are translated between two reports of progress."""

ALPHAS = (0.6, 0.8, 1.0, 1.2, 1.4)
"""Length penalties that are tried, the paper's first. Above 1 every further token pays a little: CTranslate2, which
ends its search early, would bear 2 and more; PyTorch's search goes on and writes half as much again (docs/log.md)."""
WORTH = 0.1
"""BLEU that a larger one must give to be chosen, on a thousand sentences: less is chance."""
LEAST = 5.0
"""BLEU from which a length can be asked for: a model that has learned less than that repeats itself, for minutes."""

Texts = Sequence[str]


def choose_length_penalty(
    bundle: Bundle, sources: Texts, references: Texts, to: str | Sequence[str] | None = None
) -> tuple[Bundle, dict[float, float]]:
    """Give a model, in its directory, the length penalty that it translates a dev set best with.

    That is the smallest α of those tried that none is better than by more than chance; a model that has hardly learned
    anything gets the paper's. Returns the model and the BLEU of each, which its scores.json gets too. `to` is as in
    `calibrate`.
    """
    translator = Translator(bundle)
    languages = _by_language(to, len(sources))
    bleu: dict[float, float] = {}
    for alphas in [ALPHAS] if translator.engine.penalises_last else [(alpha,) for alpha in ALPHAS]:
        written = {alpha: [""] * len(sources) for alpha in alphas}
        for language, places in languages:
            found = _penalised(translator, [sources[place] for place in places], language, alphas)
            for alpha, texts in found.items():
                for place, text in zip(places, texts, strict=True):
                    written[alpha][place] = text
        bleu |= {alpha: quick_bleu(texts, references) for alpha, texts in written.items()}
        if bleu[ALPHAS[0]] < LEAST:
            bleu = {ALPHAS[0]: bleu[ALPHAS[0]]}
            break
    chance = WORTH * (1000 / len(sources)) ** 0.5
    best = next(alpha for alpha in bleu if bleu[alpha] >= max(bleu.values()) - chance)
    noted = {"sentences": len(sources), "bleu": {str(alpha): round(value, 2) for alpha, value in bleu.items()}}
    with storage_errors(bundle.path):
        return bundle.penalised(best, noted), bleu


def _penalised(
    translator: Translator, texts: Texts, language: str | None, alphas: Sequence[float]
) -> dict[float, list[str]]:
    """What texts become with each length penalty, by one search: the first one's."""
    ways = {  # unguarded: else a model that has learned nothing yet takes minutes
        alpha: translator.sentences(texts, language, alpha=alpha, guard=False, approximate=True) for alpha in alphas
    }
    while batches := ways[alphas[0]].wanted():
        found = [translator.engine.decode(ids, options.replace(n_best=options.beam)) for ids, options in batches]
        for sentences in ways.values():
            mine = zip(found, sentences.wanted(), strict=True)
            sentences.take([[_ranked(each, batch.options) for each in hypotheses] for hypotheses, batch in mine])
    return {alpha: [each.text for each in sentences.translations()] for alpha, sentences in ways.items()}


def _ranked(hypotheses: Sequence[Hypothesis], options: DecodingOptions) -> list[Hypothesis]:
    """Hypotheses with the scores that they have by these options, best first."""
    scored = [
        replace(each, score=each.log_probability / length_penalty(float(len(each.tokens)), options))
        for each in hypotheses
    ]
    return sorted(scored, key=lambda each: each.score, reverse=True)


def calibrate(
    bundle: Bundle,
    sources: Texts,
    references: Texts,
    to: str | Sequence[str] | None = None,
    test: tuple[Texts, Texts] | None = None,
    progress: Callable[[int], None] = lambda texts: None,
) -> tuple[Bundle, Calibration]:
    """Teach a model, in its directory, its confidence from texts that it has not learned from.

    They are translated by the engine and with the options that the model is used with. Its config.json gets what makes
    a confidence of a translation's signs, its scores.json under "calibration" how far that is off: cross-fitted, which
    is also returned, and on the `test` set if one is given.

    Args:
        bundle: The model; compiled already, if it is going to be.
        sources: Texts of the dev set, at least 50.
        references: Their translations by people.
        to: The language to translate into, one for all or one for each, of a model that knows several.
        test: Sources and references that are only measured on.
        progress: Told how many texts have been translated since the last time.
    """
    translator = Translator(bundle)
    signs: list[Sequence[Signs]] = [()] * len(sources)
    written = [""] * len(sources)
    for language, places in _by_language(to, len(sources)):
        for start in range(0, len(places), TEXTS_AT_ONCE):
            block = places[start : start + TEXTS_AT_ONCE]
            sentences = translator.sentences([sources[place] for place in block], language)
            while batches := sentences.wanted():
                sentences.take([translator.engine.decode(*batch) for batch in batches])
            found = zip(block, sentences.signs(), sentences.translations(), strict=True)
            for place, mine, translation in found:
                signs[place], written[place] = mine, translation.text
            progress(len(block))
    scores = sentence_chrf(written, references)
    measured = cross_fitted(signs, scores)
    confidence = fit_confidence(signs, scores)
    noted = measured.as_dict()
    if test is not None:
        taught = Translator(replace(bundle, config=replace(bundle.config, confidence=confidence)), translator.engine)
        on_test = measured_calibration(taught, *test, progress=progress)
        noted["test"] = on_test and on_test.as_dict()
    with storage_errors(bundle.path):
        return bundle.calibrated(confidence, noted), measured


def measured_calibration(
    translator: Translator,
    sources: Texts,
    references: Texts,
    to: str | None = None,
    progress: Callable[[int], None] = lambda texts: None,
) -> Calibration | None:
    """How far a model's confidence is off on some texts; None if it has none."""
    translations = translator.translate(sources, to)
    progress(len(sources))
    return calibration_of(
        [each.confidence for each in translations], sentence_chrf([each.text for each in translations], references)
    )


def _by_language(to: str | Sequence[str] | None, count: int) -> list[tuple[str | None, list[int]]]:
    """Each language that texts are to be translated into, and which of `count` texts."""
    if to is None or isinstance(to, str):
        return [(to, list(range(count)))]
    return [(each, [place for place in range(count) if to[place] == each]) for each in dict.fromkeys(to)]
