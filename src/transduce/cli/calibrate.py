"""`transduce calibrate`, and what the dev set tells at the end of a training: how to search, how far to trust it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transduce.errors import ConfigError, InputError

if TYPE_CHECKING:
    from rich.console import Console

    from transduce.bundle import Bundle
    from transduce.data.corpus import Pair
    from transduce.data.prepare import Prepared
    from transduce.data.shards import Pairs
    from transduce.evaluation import Calibration

__all__ = ["calibrate", "calibrate_on_dev", "choose_length_on_dev", "languages_asked", "shown_calibration"]

MOST = 1000
"""Dev sentences that training calibrates on, and chooses a length penalty by: more change little."""


def calibrate(
    model: Annotated[Path, typer.Argument(help="Directory of a trained model.")],
    source: Annotated[
        Path, typer.Argument(help="Text that it has not learned from; or a .tsv, or a built-in corpus (its dev set).")
    ],
    reference: Annotated[Path | None, typer.Argument(help="Its translations by people, line by line.")] = None,
    to: Annotated[str | None, typer.Option(help="Target language, of a model that knows several.")] = None,
) -> None:
    """Teach a model how far to trust its translations: their confidence, from 0 to 1.

    0.7 means that sentences like this came out 70 % like a human's translation (chrF).

    Training does it by itself, on the dev set; do it again for text of another kind.
    """
    from transduce.bundle import Bundle, builtin_models
    from transduce.calibration import calibrate as learn
    from transduce.cli.corpus_arguments import calibrating_corpora
    from transduce.cli.line_progress import LineProgress

    if str(model) in builtin_models() and not model.exists():
        raise ConfigError(
            f"{model} is built in and stays as it is.", remedy="Copy its directory, and calibrate the copy."
        )
    bundle = Bundle.open(model)
    bundle.require("translation", "text-to-text")
    corpora = calibrating_corpora(source, reference)
    (sources, references), *test = [_sides(corpus.pairs(allow_identical=True)) for corpus in corpora]
    with LineProgress(lambda: len(sources) + sum(len(each) for each, _ in test)) as progress:
        _, measured = learn(bundle, sources, references, to, test[0] if test else None, progress.advance)
    typer.echo(shown_calibration(measured))


def _sides(pairs: Iterable[Pair]) -> tuple[list[str], list[str]]:
    known = list(pairs)
    return [pair.source for pair in known], [pair.target for pair in known]


def calibrate_on_dev(bundle: Bundle, prepared: Prepared, console: Console) -> None:
    """Calibrate a model that has just been trained, on sentences from all over its dev set."""
    from transduce.calibration import calibrate as learn
    from transduce.evaluation.calibration import FEWEST

    known = len(prepared.dev_sources)
    if known < FEWEST:
        console.print(f"No confidence: the dev set has {known} sentences, it takes {FEWEST}.")
        return
    with console.status("Calibrating …"):
        try:
            shown = shown_calibration(learn(bundle, *_some_of_dev(bundle, prepared))[1])
        except InputError as error:  # nothing that training would have failed for
            shown = f"No confidence: {error.what}"
    console.print(shown)


def choose_length_on_dev(bundle: Bundle, prepared: Prepared, console: Console) -> Bundle:
    """Give a model that has just been trained the length penalty that suits it, as the dev set tells."""
    from transduce.calibration import ALPHAS, choose_length_penalty

    with console.status("Choosing a length penalty …"):
        sample = _some_of_dev(bundle, prepared)
        chosen, bleu = choose_length_penalty(bundle, *sample)
    alpha, paper = chosen.config.decoding["alpha"], ALPHAS[0]
    instead = f"; {bleu[paper]:.1f} with the paper's {paper}" if alpha != paper else ", the paper's"
    console.print(f"Length penalty α {alpha}: BLEU {bleu[alpha]:.1f} on {len(sample[0]):,} dev sentences{instead}.")
    return chosen


def _some_of_dev(bundle: Bundle, prepared: Prepared) -> tuple[list[str], list[str], list[str] | None]:
    """Sources, references and languages of sentences from all over the dev set, which may be sorted."""
    known = len(prepared.dev_sources)
    count = min(MOST, known)
    spread = [place * known // count for place in range(count)]
    sources, references = (
        [side[index] for index in spread] for side in (prepared.dev_sources, prepared.dev_references)
    )
    return sources, references, languages_asked(bundle, prepared.dev, spread)


def languages_asked(bundle: Bundle, dev: Pairs, places: Iterable[int]) -> list[str] | None:
    """Into which languages some pairs of a dev set are translated: their tags say so; None where there are none."""
    if not bundle.config.target_languages:
        return None
    marks = [(language, bundle.vocabularies().marks(language)) for language in bundle.config.target_languages]

    def language(place: int) -> str:
        source, target = (dev.ids(side, place).tolist() for side in ("source", "target"))
        fits = (name for name, (one, other) in marks if source[: len(one)] == one and target[: len(other)] == other)
        return next(fits)

    return [language(place) for place in places]


def shown_calibration(measured: Calibration) -> str:
    """In one sentence."""
    return (
        f"Confidence is off by {measured.error:.3f} (calibration error, {measured.sentences:,} sentences): "
        f"{measured.confidence:.2f} on average, where chrF is {measured.chrf:.2f}."
    )
