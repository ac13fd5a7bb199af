"""The real service in a process of its own, and the page that it serves."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import torch
from playwright.sync_api import Page, expect

from transduce.bundle import Bundle, BundleConfig
from transduce.model import Transformer, TransformerConfig
from transduce.text import Vocabularies

LINES = [f"{subject} {verb} the {thing}." for subject in ("We", "They", "Kofi and Ama")
         for verb in ("painted", "understand", "repaired") for thing in ("house", "bicycles", "question")]  # fmt: skip
CARD = """# other

A model for tests. <script>document.title = "taken over"</script>

1. See [the paper](https://arxiv.org/abs/1706.03762), not [this](javascript:document.title='taken_over').

```
make <b>it</b>
```
"""
MOST_SECONDS = 60


def _ask_for_ever(request: Request) -> NoReturn:
    while True:
        urlopen(request).close()


class Service:
    """`transduce serve`, until it is stopped."""

    def __init__(self, *arguments: str, port: int = 0) -> None:
        command = [sys.executable, "-m", "transduce", "serve", "--quiet", "--port", str(port), *arguments]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, encoding="utf-8")
        assert self._process.stderr is not None
        said = []
        for line in self._process.stderr:
            said.append(line)
            if line.startswith("Ready: "):
                self.url = line.split()[1]
                break
        else:
            self._process.stderr.close()
            self._process.wait(MOST_SECONDS)
            pytest.fail("".join(said))
        # Whatever it says further is read, or the pipe would fill up and stop it.
        self._reading = threading.Thread(target=self._process.stderr.read, daemon=True)
        self._reading.start()

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def use_up(self) -> None:
        """Ask, as another caller from this machine, until it answers that this was too often."""
        body, kind = json.dumps({"q": "Go."}).encode(), {"Content-Type": "application/json"}
        request = Request(f"{self.url}/v1/translate", body, kind)
        with pytest.raises(HTTPError, match="429") as refused:
            _ask_for_ever(request)
        refused.value.close()

    def stop(self) -> None:
        """Kill it, as a power cut would."""
        self._process.kill()
        self._process.wait(MOST_SECONDS)
        self._reading.join(MOST_SECONDS)
        if self._process.stderr:
            self._process.stderr.close()


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Random models: one more from en to de, one from de into two languages, one that does not say its languages."""
    pairs = [(line, line.upper()) for line in LINES]
    vocabularies = Vocabularies.learn(pairs, 320, shared=True, languages=["en", "fr"])
    torch.manual_seed(5)
    shape = {"d_model": 16, "d_ff": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "tying": "none"}
    model = Transformer(TransformerConfig.tiny(vocabularies.source.size, **shape))
    weights = {name: value.detach() for name, value in model.named_parameters()}
    short = {"max_length_extra": 4}  # a random model seldom ends a sentence by itself
    kinds: dict[str, dict[str, Any]] = {
        "other": {"source_language": "en", "target_language": "de"},
        "several": {"source_language": "de", "target_language": "en", "target_languages": ["en", "fr"]},
        "silent": {},
    }
    folder = tmp_path_factory.mktemp("models")
    for name, languages in kinds.items():
        config = BundleConfig(architecture=asdict(model.config), decoding=short, **languages)
        Bundle.write(folder / name, config, weights, vocabularies, {}, CARD)
    return {name: folder / name for name in kinds}


@pytest.fixture(scope="session")
def service(models: dict[str, Path]) -> Iterator[Service]:
    """All models, and no limit on requests."""
    running = Service("en-de", *map(str, models.values()), "--requests-per-minute", "0")
    yield running
    running.stop()


@pytest.fixture(scope="session")
def small_service() -> Iterator[Service]:
    """One that takes three texts or 60 characters at a time."""
    running = Service("en-de", "--max-texts", "3", "--max-characters", "60", "--requests-per-minute", "0")
    yield running
    running.stop()


@pytest.fixture(scope="session")
def busy_service() -> Iterator[Service]:
    """One that answers a request every five seconds, after twelve at once."""
    running = Service("en-de", "--max-texts", "1", "--requests-per-minute", "12")
    yield running
    running.stop()


@pytest.fixture(scope="session")
def start() -> type[Service]:
    """What starts a service with arguments of one's own; whoever does stops it, too."""
    return Service


@pytest.fixture
def serve() -> Iterator[Callable[..., Service]]:
    """Start services with arguments of one's own, which end with the test."""
    started: list[Service] = []

    def start(*arguments: str, port: int = 0) -> Service:
        started.append(Service(*(arguments or ("en-de",)), port=port))
        return started[-1]

    yield start
    for each in started:
        each.stop()


@pytest.fixture
def desk(page: Page, service: Service) -> Page:
    """The page, opened and ready."""
    page.goto(service.url)
    expect(page.locator("#into")).to_have_value("de")
    return page


@pytest.fixture(autouse=True)
def _called_off(trouble: Any) -> None:
    """What the page calls off is no trouble, nor the icon, which the browser may want when its service has ended."""
    trouble.overlook("/v1/", "ERR_ABORTED")
    trouble.overlook("/static/icon.svg", "ERR_CONNECTION_")


@pytest.fixture(autouse=True, scope="session")
def _patience() -> None:
    expect.set_options(timeout=15_000)
