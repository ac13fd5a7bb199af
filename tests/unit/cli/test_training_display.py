"""What training says where there is no terminal to draw in."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from transduce.cli.training_display import TrainingDisplay
from transduce.training.events import Averaged, Event, Halved, Resumed, Skipped, Started, Validated
from transduce.training.recipe import Budget


def scores(bleu: float) -> dict[str, float]:
    return {"bleu": bleu, "chrf": 2 * bleu, "perplexity": 3.0}


WORDS = "BLEU {}, chrF {}, perplexity 3.00"
MEAN = Averaged(40, 90.0, [20, 40], scores(21.04), 40, scores(20.0), better=True, damaged=["snapshots/[step]-30"])
WORSE = Averaged(1040, 90.0, [20, 1040], scores(19.0), 40, scores(20.0), better=False, damaged=[])
HALVED = "step 7: a batch too large for memory was done in 4 parts{}; others as large are halved at once\n"


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (Started([]), ""),
        (Started(["step-9"]), "  passed over a damaged checkpoint: step-9\n"),
        (Resumed(1200, []), "Going on from step 1,200\n"),
        (Validated(1200, 90.0, scores(12.3), better=False), f"0:01:30  step 1,200: {WORDS.format(12.3, 24.6)}\n"),
        (Validated(1200, 90.0, scores(12.3), better=True), f"0:01:30  step 1,200: {WORDS.format(12.3, 24.6)} (best)\n"),
        (Skipped(1200, "a loss spike"), "step 1,200 skipped: a loss spike\n"),
        (Halved(7, 4, 0), HALVED.format("")),
        (Halved(7, 4, 2), HALVED.format(", 2 pairs left out")),
        (
            MEAN,
            "  left out a damaged snapshot: snapshots/[step]-30\n"
            f"0:01:30  mean of steps 20, 40: {WORDS.format(21.0, 42.1)}\n"
            f"      best single, step 40: {WORDS.format(20.0, 40.0)}; kept: the mean\n",
        ),
        (
            WORSE,
            f"0:01:30  mean of steps 20, 1040: {WORDS.format(19.0, 38.0)}\n"
            f"      best single, step 40: {WORDS.format(20.0, 40.0)}; kept: the single weights of step 40\n",
        ),
    ],
    ids=["started", "damaged", "resumed", "validated", "best", "skipped", "halved", "left out", "mean", "worse mean"],
)
def test_each_event_has_its_words(event: Event, said: str) -> None:
    output = StringIO()
    TrainingDisplay(Console(file=output, width=200), Budget()).show(event)
    assert output.getvalue() == said
