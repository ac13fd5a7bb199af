"""The held-out part is stable, keeps equal sources together and has the size asked for."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from transduce.data.holdout import holdout_share, is_held_out
from transduce.errors import ConfigError

SENTENCES = [f"Sentence number {n}." for n in range(20_000)]


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_about_the_share_asked_for_is_held_out(share: float) -> None:
    held_out = sum(is_held_out(sentence, share) for sentence in SENTENCES)
    deviation = (len(SENTENCES) * share * (1 - share)) ** 0.5
    assert abs(held_out - len(SENTENCES) * share) < 4 * deviation


def test_nothing_or_everything_can_be_held_out() -> None:
    assert not any(is_held_out(sentence, 0.0) for sentence in SENTENCES)
    assert all(is_held_out(sentence, 1.0) for sentence in SENTENCES)


def test_sources_that_differ_in_case_or_spacing_stay_together() -> None:
    for sentence in SENTENCES[:500]:
        variants = [sentence.upper(), f"  {sentence}\t", sentence.replace(" ", " \u00a0")]
        assert {is_held_out(variant, 0.5) for variant in variants} == {is_held_out(sentence, 0.5)}
    assert all(is_held_out(f"Straße {n}", 0.5) == is_held_out(f"STRASSE {n}", 0.5) for n in range(100))


def test_a_larger_share_holds_a_smaller_one() -> None:
    assert all(is_held_out(sentence, 0.2) for sentence in SENTENCES if is_held_out(sentence, 0.1))


def test_another_salt_makes_another_choice() -> None:
    first, second = ({s for s in SENTENCES if is_held_out(s, 0.1, salt)} for salt in (0, 1))
    assert len(first & second) < 0.2 * len(first)  # a tenth is expected by chance


def test_every_run_makes_the_same_choice() -> None:
    """Python's own hash() differs from run to run; ours must not."""
    code = "print(*(int(is_held_out(f'Sentence number {n}.', 0.5)) for n in range(200)))"
    code = f"from transduce.data.holdout import is_held_out; {code}"
    runs = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    here = " ".join(str(int(is_held_out(sentence, 0.5))) for sentence in SENTENCES[:200])
    assert {run.decode().strip() for run in runs} == {here}


@pytest.mark.parametrize(
    ("pairs", "expected"), [(100, 10), (9_000, 900), (15_000, 1500), (165_000, 1500), (5_000_000, 1500)]
)
def test_the_share_gives_a_development_set_of_useful_size(pairs: int, expected: int) -> None:
    assert pairs * holdout_share(pairs) == pytest.approx(expected)


def test_an_empty_corpus_has_a_share_too() -> None:
    assert 0 <= holdout_share(0) <= 0.1


@pytest.mark.parametrize("share", [-0.1, 10, float("nan")])
def test_a_share_is_not_a_percentage(share: float) -> None:
    with pytest.raises(ConfigError, match=rf"share={share} cannot work.*0\.1 is a tenth"):
        is_held_out("Hello.", share)
