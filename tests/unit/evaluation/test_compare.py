"""Differences are told from chance, as the sacrebleu command does it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from transduce.errors import ConfigError, InputError
from transduce.evaluation import compare

Spoil = Callable[[float, int], list[str]]
METRICS = ["bleu", "chrf", "ter"]
# Such as 40.126711 (40.000832 ± 8.212756), and below it (p = 0.0099)*
PRINTED = re.compile(r"(\d+\.\d+) \((\d+\.\d+) ± (\d+\.\d+)\)")
PRINTED_P = re.compile(r"\(p = (\d+\.\d+)\)")


def test_scores_and_p_values_are_those_of_the_sacrebleu_command(
    references: list[str], spoil: Spoil, sacrebleu: Callable[..., str]
) -> None:
    baseline, rival = spoil(0.2, 2), spoil(0.19, 3)
    options = ["-m", *METRICS, "--paired-bs", "--paired-bs-n", "50", "--format", "text"]
    text = sacrebleu(references, baseline, rival, options=options)
    systems = compare({"old": baseline, "new": rival}, references, metrics=METRICS, samples=50).systems

    ours = [systems[system][metric] for system in ("old", "new") for metric in METRICS]
    theirs = [[float(number) for number in found] for found in PRINTED.findall(text)]
    assert len(theirs) == 6
    for score, (value, mean, half) in zip(ours, theirs, strict=True):
        found = (score.value, score.mean, score.low, score.high)
        assert found == pytest.approx((value, mean, mean - half, mean + half), abs=1e-5)
        assert score.signature in text
    p_values = [float(number) for number in PRINTED_P.findall(text)]
    assert [systems["new"][metric].p_value for metric in METRICS] == pytest.approx(p_values, abs=1e-4)
    assert all(0.05 < p_value < 1 for p_value in p_values)  # so that the comparison above is not of trivial values


def test_a_better_system_is_better_and_a_worse_one_worse(references: list[str], spoil: Spoil) -> None:
    systems = {"middle": spoil(0.3, 2), "good": spoil(0.1, 3), "bad": spoil(0.6, 4)}
    result = compare(systems, references, metrics=METRICS, samples=100)
    assert (result.sentences, result.baseline, list(result.systems)) == (200, "middle", ["middle", "good", "bad"])
    for metric in METRICS:
        middle, good, bad = (result.systems[name][metric] for name in systems)
        assert (middle.p_value, middle.better, middle.worse) == (None, None, None)
        assert (good.better, good.worse) == (True, False)
        assert (bad.better, bad.worse) == (False, True)
        assert good.p_value is not None
        assert good.p_value < 0.05
        assert good.low < good.mean < good.high
    assert result.systems["good"]["ter"].value < result.systems["middle"]["ter"].value  # lower is better here


def test_equal_systems_do_not_differ(references: list[str], spoil: Spoil) -> None:
    result = compare({"a": spoil(0.2, 2), "b": spoil(0.2, 2)}, references, metrics=METRICS, samples=100)
    for score in result.systems["b"].values():
        assert (score.p_value, score.better, score.worse) == (1, False, False)


def test_systems_that_differ_by_chance_alone_do_not_differ(references: list[str], spoil: Spoil) -> None:
    result = compare({"a": spoil(0.2, 2), "b": spoil(0.2, 3)}, references, samples=100)
    for score in result.systems["b"].values():
        assert (score.better, score.worse) == (False, False)


def test_the_same_seed_gives_the_same_result(references: list[str], spoil: Spoil) -> None:
    systems = {"a": spoil(0.2, 2), "b": spoil(0.25, 3)}
    first = compare(systems, references, metrics=["bleu"], samples=50, seed=7)
    assert compare(systems, references, metrics=["bleu"], samples=50, seed=7) == first
    other = compare(systems, references, metrics=["bleu"], samples=50, seed=8)
    for name in systems:
        assert other.systems[name]["bleu"].value == first.systems[name]["bleu"].value
        assert other.systems[name]["bleu"].mean != first.systems[name]["bleu"].mean
    assert "bs:50|seed:7" in first.systems["b"]["bleu"].signature


def test_as_dict_survives_json(references: list[str], spoil: Spoil) -> None:
    result = compare({"a": spoil(0.2, 2), "b": references}, references, metrics=METRICS, samples=20)
    read = json.loads(json.dumps(result.as_dict()))
    assert read.keys() == {"sentences", "baseline", "systems"}
    assert read["systems"]["b"]["ter"]["value"] == 0
    assert read["systems"]["b"]["bleu"]["better"] is True
    assert read["systems"]["a"]["bleu"]["p_value"] is None


@pytest.mark.parametrize(
    ("systems", "message"),
    [
        ({"a": ["x", "y"]}, r"two systems or more, this has 1.*baseline"),
        ({}, r"this has 0"),
        ({"a": ["x", "y"], "b": ["x"]}, r"system 'b': .*1 hypotheses, 2 references"),
    ],
)
def test_systems_that_cannot_be_compared_are_named(systems: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        compare(systems, ["x", "y"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": ["chr"]}, r"'chr' is not a metric\. Did you mean 'chrf'\?"),
        ({"samples": 0}, r"samples=0"),
        ({"seed": 0}, r"seed=0 cannot work"),
    ],
)
def test_wrong_settings_are_named_with_their_remedy(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        compare({"a": ["x"], "b": ["y"]}, ["x"], **options)
