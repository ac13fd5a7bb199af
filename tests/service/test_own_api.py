"""Our own API: models, n-best, scores, prefixes, alignment, attention, figures."""

from __future__ import annotations

import base64
import json
import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest

from transduce import Translator
from transduce.bundle import builtin_models, find_model

TEXT = "Where is the station?"


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator.load("en-de")


def test_translations_are_those_of_the_library(service: Any, translator: Translator) -> None:
    texts = [TEXT, "", "I would like a cup of coffee. " * 9, "My sister works in a hospital."]
    status, answer, _ = service.post("/v1/translate", {"q": texts, "n_best": 3})
    assert status == 200
    assert (answer["model"], answer["target"]) == ("en-de", "de")
    expected = translator.translate(texts, n_best=3)
    assert [each["text"] for each in answer["translations"]] == [each.text for each in expected]
    for found, wanted in zip(answer["translations"], expected, strict=True):
        assert found["score"] == pytest.approx(wanted.score, abs=1e-3)
        assert [each["text"] for each in found["alternatives"]] == [each.text for each in wanted.alternatives]


def test_a_prefix_begins_the_translation(service: Any) -> None:
    answer = service.post("/v1/translate", {"q": TEXT, "prefix": "Sagen Sie"})[1]
    assert answer["translations"][0]["text"].startswith("Sagen Sie ")


def test_words_are_aligned_as_characters_of_both_texts(service: Any) -> None:
    text = "I am tired.\n\n  My sister works in a hospital."
    found = service.post("/v1/translate", {"q": text, "alignment": True})[1]["translations"][0]
    links = {found["text"][slice(*link["target"])]: text[slice(*link["source"])] for link in found["alignment"]}
    assert " ".join(links).split() == found["text"].split()
    assert links["Schwester"] == "sister"
    assert links["Ich"] == "I"
    assert set(links.values()) <= set(text.split())


def test_attention_is_that_of_the_library(service: Any, translator: Translator) -> None:
    maps = translator.attention(TEXT)
    answer = service.post("/v1/attention", {"q": TEXT})[1]
    assert answer["target"]["text"] == maps.text
    for kind in ("encoder", "decoder", "cross"):
        expected = getattr(maps, kind)
        assert np.array(answer["maps"][kind]["numbers"]) == pytest.approx(expected, abs=1e-4)
    compact = service.post("/v1/attention", {"q": TEXT, "encoding": "bytes"})[1]["maps"]["cross"]
    values = np.frombuffer(base64.b64decode(compact["bytes"]), np.uint8).reshape(compact["shape"]) / 255
    assert values == pytest.approx(maps.cross, abs=1 / 500)


def test_attention_to_a_given_translation(service: Any) -> None:
    answer = service.post("/v1/attention", {"q": TEXT, "translation": "Wo steht der Zug?"})[1]
    assert answer["target"]["text"] == "Wo steht der Zug?"
    assert len(answer["steps"]) == len(answer["target"]["tokens"])


def test_what_must_survive_does_and_warnings_say_at_what_cost(service: Any) -> None:
    before = service.figure('redone_total{model="en-de"}')
    answer = service.post("/v1/translate", {"q": ["I like https://example.com/a very much.", "Good night."]})[1]
    first, second = answer["translations"]
    assert "https://example.com/a" in first["text"]
    assert [flag["code"] for flag in first["warnings"]] in ([], ["pieces"])
    assert second["warnings"] == []
    raw = service.post("/v1/translate", {"q": "I like https://example.com/a very much.", "guard": False})[1]
    assert raw["translations"][0]["warnings"] == []
    assert service.figure('redone_total{model="en-de"}') - before in (0, 1)


def test_a_glossary_says_what_terms_become(service: Any) -> None:
    asked = {"q": "My bank account is empty.", "glossary": {"bank account": "Girokonto"}}
    assert "Girokonto" in service.post("/v1/translate", asked)[1]["translations"][0]["text"]
    libre = service.post("/translate", asked | {"source": "en", "target": "de"})[1]
    assert "Girokonto" in libre["translatedText"]
    form = urlencode({"q": asked["q"], "source": "en", "target": "de", "glossary": json.dumps(asked["glossary"])})
    by_form = service.post("/translate", form.encode(), content_type="application/x-www-form-urlencoded")[1]
    assert by_form == libre


def test_the_hypotheses_can_be_asked_for_their_consensus(service: Any) -> None:
    sentences = ["My brother is reading a good book.", "Did you see Tom at the station?"]
    answer = service.post("/v1/translate", {"q": sentences, "beam": 8, "mbr": True})[1]
    chosen = Translator.load("en-de").translate(sentences, beam=8, mbr=True)
    assert [each["text"] for each in answer["translations"]] == [each.text for each in chosen]
    single, plain = (
        service.post("/v1/translate", {"q": sentences, "beam": 1, "mbr": mbr})[1]["translations"]
        for mbr in (True, False)
    )
    assert single == plain  # which agrees with itself


def test_models_with_card_and_scores(service: Any) -> None:
    (model,) = service.get("/v1/models")[1]["models"]
    assert (model["name"], model["source"], model["targets"]) == ("en-de", "en", ["de"])
    assert model["card"] == (find_model("en-de") / "README.md").read_text(encoding="utf-8")
    assert model["scores"] == json.loads((find_model("en-de") / "scores.json").read_text(encoding="utf-8"))
    weights = Translator.load("en-de").bundle.model().parameters()
    assert model["parameters"] == sum(each.numel() for each in weights)


@pytest.mark.parametrize(
    ("path", "asked", "status", "words"),
    [
        ("/v1/translate", {"q": TEXT, "bean": 4}, 400, "'bean' is not known. Did you mean 'beam'?"),
        ("/v1/translate", {"q": TEXT, "beam": "4"}, 400, "beam"),
        ("/v1/translate", {"q": TEXT, "beam": 0}, 400, "greater than or equal to 1"),
        ("/v1/translate", {"q": TEXT, "model": "en-dd"}, 404, "no model 'en-dd'. Did you mean 'en-de'?"),
        ("/v1/translate", {"q": TEXT, "model": "en-de", "target": "fr"}, 404, "'en-de' does not translate"),
        ("/v1/translate", {"q": []}, 400, "q"),
        ("/v1/translate", {"q": TEXT, "glossary": {"station": "?"}}, 400, "glossary has no letter or digit."),
        ("/v1/translate", {"q": TEXT, "glossary": {"station": 5}}, 400, "glossary"),
        ("/v1/attention", {"q": " ?"}, 400, "nothing to look at"),
        ("/v1/attention", {"q": "a " * 600}, 413, "1000 characters"),
        ("/v1/attention", {"q": TEXT, "encoding": "pictures"}, 400, "encoding"),
        ("/v1/nothing", {}, 404, "nothing here"),
    ],
)
def test_mistakes_are_answered_in_words(service: Any, path: str, asked: Any, status: int, words: str) -> None:
    found, answer, _ = service.post(path, asked)
    assert (found, list(answer)) == (status, ["error"])
    assert words in answer["error"]


def test_a_method_that_is_not_there(service: Any) -> None:
    status, answer, headers = service.get("/v1/translate")
    assert (status, list(answer)) == (405, ["error"])
    assert headers["allow"] == "POST"


def test_several_models_are_chosen_by_name_and_by_languages(serve: Any, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(find_model("en-de"), other)
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps(config | {"source_language": None, "target_language": None}))
    with serve("en-de", f"mine={other}", "--languages", "xx-yy") as service:
        names = {model["name"]: (model["source"], model["targets"]) for model in service.get("/v1/models")[1]["models"]}
        assert names == {"en-de": ("en", ["de"]), "mine": ("xx", ["yy"])}
        assert [each["code"] for each in service.get("/languages")[1]] == ["en", "xx"]
        assert service.post("/v1/translate", {"q": TEXT, "target": "yy"})[1]["model"] == "mine"
        assert service.post("/v1/translate", {"q": TEXT, "model": "mine"})[1]["target"] == "yy"
        assert service.post("/v1/translate", {"q": TEXT})[1]["model"] == "en-de"
        assert service.post("/translate", {"q": TEXT, "source": "xx", "target": "yy"})[0] == 200
        assert service.post("/translate", {"q": TEXT, "source": "xx", "target": "de"})[0] == 404


def test_all_built_in_models_are_served_unless_some_are_named(serve: Any) -> None:
    with serve() as service:
        assert [model["name"] for model in service.get("/v1/models")[1]["models"]] == builtin_models()
        assert service.post("/v1/translate", {"q": TEXT})[1]["model"] == "en-de"
        answer = service.post("/v1/translate", {"q": TEXT, "source": "eng", "target": "ger"})[1]
        assert (answer["model"], answer["target"]) == ("en-de", "de")
        targets = {each["code"]: each["targets"] for each in service.get("/languages")[1]}
        assert sorted(f"{source}-{target}" for source, into in targets.items() for target in into) == sorted(
            builtin_models()
        )


def test_figures_count_what_was_done(serve: Any) -> None:
    with serve("en-de") as service:
        service.post("/v1/translate", {"q": [TEXT, "Yes."]})
        service.post("/v1/translate", {"q": TEXT, "model": "none"})
        text = service.get("/metrics")[1]
        values = dict(re.findall(r"^(transduce_[^ ]+) (\S+)$", text, re.M))
        assert values['transduce_requests_total{route="/v1/translate",status="200"}'] == "1"
        assert values['transduce_requests_total{route="/v1/translate",status="404"}'] == "1"
        assert values['transduce_refusals_total{reason="model"}'] == "1"
        assert values['transduce_sentences_total{model="en-de"}'] == "2"
        assert values['transduce_characters_total{model="en-de"}'] == str(len(TEXT) + 4)
        assert values["transduce_request_seconds_count"] == "2"
        assert values["transduce_waiting_sentences"] == "0"
        bounds = [int(each) for each in re.findall(r'request_seconds_bucket\{le="[^"]+"\} (\d+)', text)]
        assert bounds == sorted(bounds)
        assert bounds[-1] == 2
