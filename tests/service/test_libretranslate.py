"""Clients of LibreTranslate work unchanged."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
from libretranslatepy import LibreTranslateAPI

from transduce import Translator

TEXT = "Where is the station?"
FORM = "application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def german() -> str:
    """What the library itself makes of the text."""
    return Translator.load("en-de").translate(TEXT).text


def test_the_real_client(service: Any, german: str) -> None:
    client = LibreTranslateAPI(service.url)
    assert client.translate(TEXT, "en", "de") == german
    assert client.detect("Wo ist denn hier der Bahnhof?")[0]["language"] == "de"
    assert client.languages() == [{"code": "en", "name": "English", "targets": ["de"]}]


def test_the_real_client_with_a_key(serve: Any, tmp_path: Any, german: str) -> None:
    (tmp_path / "keys").write_text("# for the office\n\nopen-sesame\nanother-key\n")
    with serve("en-de", "--api-key-file", tmp_path / "keys") as service:
        assert LibreTranslateAPI(service.url, "open-sesame").translate(TEXT, "en", "de") == german
        assert LibreTranslateAPI(service.url, "another-key").translate(TEXT, "en", "de") == german
        asked = {"q": TEXT, "source": "en", "target": "de"}
        for body in (asked, asked | {"api_key": "open-sesam"}):
            status, answer, _ = service.post("/translate", body)
            assert (status, list(answer)) == (403, ["error"])
        assert service.post("/v1/translate", {"q": TEXT}, authorization="Bearer open-sesame")[0] == 200
        assert service.post("/v1/translate", {"q": TEXT}, authorization="Bearer sesame-open")[0] == 403
        assert service.get("/frontend/settings")[1]["keyRequired"] is True
        assert service.get("/health")[0] == 200  # whether it is there is no secret
        assert "sesam" not in service.log


def test_form_and_json_are_answered_alike(service: Any, german: str) -> None:
    form = urlencode({"q": TEXT, "source": "en", "target": "de", "alternatives": 2}).encode()
    by_form = service.post("/translate", form, content_type=FORM)
    by_json = service.post("/translate", {"q": TEXT, "source": "en", "target": "de", "alternatives": 2})
    assert by_form[:2] == by_json[:2]
    assert by_json[1]["translatedText"] == german
    assert len(set(by_json[1]["alternatives"]) - {german}) == 2


def test_a_list_is_answered_with_lists(service: Any, german: str) -> None:
    asked = {"q": [TEXT, "", TEXT], "source": "auto", "target": "de", "alternatives": 1}
    status, answer, _ = service.post("/translate", asked)
    assert status == 200
    assert answer["translatedText"] == [german, "", german]
    assert [len(each) for each in answer["alternatives"]] == [1, 0, 1]
    assert [each["language"] for each in answer["detectedLanguage"]] == ["en"] * 3
    several = b"&".join([urlencode({"q": TEXT}).encode()] * 2) + b"&source=en&target=de"
    assert service.post("/translate", several, content_type=FORM)[1]["translatedText"] == [german, german]


def test_lines_and_spaces_stay_where_they_are(service: Any, german: str) -> None:
    text = f"\n  {TEXT}\n\n{TEXT}\t"
    answer = service.post("/translate", {"q": text, "source": "en", "target": "de"})[1]
    assert answer["translatedText"] == f"\n  {german}\n\n{german}\t"


def test_tags_of_html_stay_as_they_are(service: Any, german: str) -> None:
    html = f'<p class="a">{TEXT}</p><!-- {TEXT} --><br/><code>{TEXT}</code> &amp; '
    answer = service.post("/translate", {"q": html, "source": "en", "target": "de", "format": "html"})[1]
    assert answer["translatedText"] == html.replace(f'"a">{TEXT}', f'"a">{german}')


@pytest.mark.parametrize(
    ("asked", "status", "words"),
    [
        ({"source": "en", "target": "de"}, 400, "missing q parameter"),
        ({"q": TEXT, "target": "de"}, 400, "missing source parameter"),
        ({"q": TEXT, "source": "en"}, 400, "missing target parameter"),
        ({"q": 5, "source": "en", "target": "de"}, 400, "q: input should be a valid string"),
        ({"q": TEXT, "source": "fr", "target": "de"}, 404, "from 'fr' into 'de'. There is: en-de"),
        ({"q": TEXT, "source": "en", "target": "tw"}, 404, "from 'en' into 'tw'"),
        ({"q": TEXT, "source": "en", "target": "de", "format": "pdf"}, 400, "format"),
        ({"q": TEXT, "source": "en", "target": "de", "alternatives": 99}, 400, "alternatives"),
        ({"q": "\ud800", "source": "en", "target": "de"}, 400, "surrogates"),
        ([], 400, "the request"),
    ],
)
def test_mistakes_have_its_error_shape(service: Any, asked: Any, status: int, words: str) -> None:
    found, answer, _ = service.post("/translate", asked)
    assert found == status
    assert list(answer) == ["error"]
    assert words in answer["error"]
