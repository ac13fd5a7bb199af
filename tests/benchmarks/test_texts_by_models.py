"""Which of a model's translations another model learns from, and which sentences it is given to translate."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from nearest import nearest
from sure import is_sure
from tatoeba_texts import sentences
from transduce.data.builtin import builtin_corpus

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_the_hypothesis_nearest_to_any_translation_is_taken() -> None:
    hypotheses = ["Wie bist du?", "Wie geht es dir?", "Wie geht es?"]
    assert nearest(hypotheses, ["Wie geht es Ihnen?", "Wie geht es dir?"]) == (1, pytest.approx(100.0))
    assert nearest(hypotheses, ["Wie geht es denn?"])[0] == 2
    assert nearest(["Hund", "Katze"], ["qy"]) == (0, 0.0)


def test_of_equally_near_ones_the_likelier_is_taken() -> None:
    assert nearest(["Hallo Welt", "Hallo Welt"], ["Hallo"])[0] == 0


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, True),
        ({"confidence": 0.49}, False),
        ({"warnings": [{"code": "repetition"}]}, False),
        ({"translation": " "}, False),
        ({"translation": "ein Hund und ein Hund und ein Hund"}, False),
        ({"translation": "ein Hund und ein Hund"}, True),
    ],
)
def test_only_what_a_model_is_sure_of_is_learned_from(change: dict[str, object], expected: bool) -> None:
    assert is_sure({"translation": "Ein Hund.", "confidence": 0.5, "warnings": []} | change, 0.5) is expected


def test_pairs_that_are_kept_stay_together(tmp_path: Path) -> None:
    lines = [("One.", "Eins.", 0.9), ("Two.", "Zwei.", 0.1), ("Three.", "Drei.", 0.8)]
    values = [{"source": a, "translation": b, "confidence": sure, "warnings": []} for a, b, sure in lines]
    (tmp_path / "all.jsonl").write_text("".join(json.dumps(each) + "\n" for each in values))
    out = [tmp_path / "kept.en", tmp_path / "kept.de"]
    command = [sys.executable, BENCHMARKS / "sure.py", tmp_path / "all.jsonl", "--least", "0.5", "-o", *out]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert said == "2 of 3 pairs\n"
    assert [path.read_text() for path in out] == ["One.\nThree.\n", "Eins.\nDrei.\n"]


def test_nothing_that_is_measured_on_is_among_the_sentences() -> None:
    found = sentences("tatoeba-en-de")
    assert len(found) > 60_000
    assert len(set(found)) == len(found)
    bare = {"".join(filter(str.isalnum, line)).lower() for line in found}
    for part in ("dev", "test"):
        for pair in builtin_corpus("tatoeba-en-de", part).pairs():
            assert "".join(filter(str.isalnum, pair.source)).lower() not in bare
