"""Docs that cannot rot: pointed-at names exist, and examples run."""

from __future__ import annotations

import importlib
import re
from importlib.metadata import version
from pathlib import Path

import pytest

import transduce
from transduce.bundle import Bundle, find_model
from transduce.data.builtin import builtin_corpus
from transduce.interop.export import Export

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
NAME = re.compile(r"`(transduce(?:\.\w+)+)(?:\(\))?`")


def resolve(name: str) -> object:
    """The object that a dotted name points at: the longest importable module, then attributes."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[length:]:
            found = getattr(found, attribute)
        return found
    raise ModuleNotFoundError(name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_pointed_at_name_exists(page: Path) -> None:
    for name in NAME.findall(page.read_text(encoding="utf-8")):
        resolve(name)


def test_a_name_that_does_not_exist_would_be_noticed() -> None:
    with pytest.raises(AttributeError):
        resolve("transduce.model.attention.no_such_function")
    with pytest.raises(ModuleNotFoundError):
        resolve("no_such_package.module")


def test_the_paper_in_code_points_at_every_part_of_the_model() -> None:
    """A part of the network that the walk through the paper leaves out is a gap in it."""
    pointed_at = set(NAME.findall((ROOT / "docs" / "the-paper-in-code.md").read_text(encoding="utf-8")))
    assert len(pointed_at) >= 20
    for module in sorted((ROOT / "src/transduce/model").glob("[!_]*.py")):
        assert any(name.startswith(f"transduce.model.{module.stem}.") for name in pointed_at), module.stem


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of Hugging Face's, by the names that the docs of the doors use."""
    folder = tmp_path_factory.mktemp("doors")
    for name in ("exported", "opus-mt-en-de"):
        Export(Bundle.open(find_model("en-de")), "huggingface", folder / name).write()
    return folder


# Those of the guide to serving need a service, and are run against one in tests/service.
@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "serving.md"], ids=lambda page: page.name)
def test_python_examples_run(page: Path, exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page.parent.name == "doors":  # they name models in the current folder
        monkeypatch.chdir(exported)
    namespace: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL):
        exec(compile(block, page.name, "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_inside_the_project_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_the_version_is_the_same_everywhere() -> None:
    assert version("transduce") == transduce.__version__
    assert f"## {transduce.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_demo_ends_with_sentences_that_it_was_not_trained_on() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (line,) = re.findall(r"^UNSEEN\s*:=(.*)$", makefile, re.MULTILINE)
    sentences = set(re.findall(r'"([^"]+)"', line))
    assert len(sentences) >= 3
    assert not sentences & {pair.source for pair in builtin_corpus("tatoeba-en-de").pairs()}
