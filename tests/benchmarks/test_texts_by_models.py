"""Which of a model's hypotheses another model learns from, and which sentences it is given to translate."""

from __future__ import annotations

import pytest

from nearest import nearest
from tatoeba_texts import sentences
from transduce.data.builtin import builtin_corpus


def test_the_hypothesis_nearest_to_any_translation_is_taken() -> None:
    hypotheses = ["Wie bist du?", "Wie geht es dir?", "Wie geht es?"]
    assert nearest(hypotheses, ["Wie geht es Ihnen?", "Wie geht es dir?"]) == (1, pytest.approx(100.0))
    assert nearest(hypotheses, ["Wie geht es denn?"])[0] == 2
    assert nearest(["Hund", "Katze"], ["qy"]) == (0, 0.0)


def test_of_equally_near_ones_the_likelier_is_taken() -> None:
    assert nearest(["Hallo Welt", "Hallo Welt"], ["Hallo"])[0] == 0


def test_nothing_that_is_measured_on_is_among_the_sentences() -> None:
    found = sentences("tatoeba-en-de")
    assert len(found) > 60_000
    assert len(set(found)) == len(found)
    bare = {"".join(filter(str.isalnum, line)).lower() for line in found}
    for part in ("dev", "test"):
        for pair in builtin_corpus("tatoeba-en-de", part).pairs():
            assert "".join(filter(str.isalnum, pair.source)).lower() not in bare
