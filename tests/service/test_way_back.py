"""`transduce serve --back`: two models that lead there and back."""

from __future__ import annotations

from typing import Any

import pytest

from transduce.errors import ConfigError
from transduce.serve.models import ServedModels
from transduce.text.languages import Direction
from transduce.translator import Translator

TEXTS = [
    "My sister works in a hospital and my brother is a teacher at the same school that we went to.",
    "I told him that I had no time, but he did not want to wait until the others were back.",
    "The old man who lives next door gave me the keys of his car before he left.",
]


def test_each_has_a_say_in_what_the_other_writes(serve: Any) -> None:
    plain, both = Translator.load("en-de"), Translator.load("en-de", back="de-en")
    with serve("en-de", "de-en", "--back") as service:
        assert "en-de: en -> de, back by de-en" in service.log
        assert "de-en: de -> en, back by en-de" in service.log

        def asked(**options: Any) -> list[str]:
            status, answer, _ = service.post("/v1/translate", {"q": TEXTS, "target": "de", **options})
            assert status == 200
            return [each["text"] for each in answer["translations"]]

        assert asked(beam=6) == [each.text for each in both.translate(TEXTS, beam=6)]
        assert asked(beam=6) != [each.text for each in plain.translate(TEXTS, beam=6)]
        assert asked(beam=1) == [each.text for each in plain.translate(TEXTS, beam=1)]
        assert asked(beam=6, mbr=True) == [each.text for each in plain.translate(TEXTS, beam=6, mbr=True)]
        looked = service.post("/v1/attention", {"q": TEXTS[0], "target": "de"})[1]
        assert looked["target"]["text"] == both.translate(TEXTS[0]).text
        libre = service.post("/translate", {"q": TEXTS, "source": "en", "target": "de"})[1]
        assert libre["translatedText"] == [each.text for each in both.translate(TEXTS)]


def test_without_a_model_of_the_other_direction_it_is_refused() -> None:
    with pytest.raises(ConfigError, match="no model leads back"):
        ServedModels.load(["en-de", "en-fr"], Direction(), 1, back=True)
