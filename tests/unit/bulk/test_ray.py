"""The same over a real Ray: every line once and in order, also when a worker is killed."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from transduce.bulk import BulkTranslation
from transduce.bulk.records import records_of
from transduce.bundle import Bundle
from transduce.cluster import connected
from transduce.data import prepare as prepare_module
from transduce.data.builtin import builtin_corpus
from transduce.data.corpus import Corpus
from transduce.data.encoding import Hands
from transduce.data.prepare import Preparation, prepare
from transduce.errors import BundleError, ConfigError

# Ray warns of its own ways, in threads of its own too.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    with connected(workers=2) as ray:
        yield ray


def translation(text: Path, bundle: Bundle, output: Path) -> BulkTranslation:
    return BulkTranslation(input=text, records=records_of(text), output=output, bundle=bundle, beam=1, block=16)


def actors(name: str) -> list[int]:
    """The processes of Ray's workers of that name, children of what this process has started."""
    parents, found = {}, []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if name in (path / "cmdline").read_text():
                found.append(int(path.name))
        except OSError:  # it has just ended
            continue
    return [pid for pid in found if parents.get(parents[pid]) == os.getpid()]


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes by /proc")
def test_a_killed_actor_changes_nothing(
    ray: Any, text: Path, bundle: Bundle, expected: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    killed: list[int] = []

    def kill(done: int, of: int) -> None:
        if done and not killed:
            killed.append(actors("MapWorker")[0])
            os.kill(killed[0], signal.SIGKILL)

    summary = translation(text, bundle, tmp_path / "out").run("ray", 2, progress=kill)
    assert killed
    assert summary.path.read_text(encoding="utf-8").split("\n")[:-1] == expected
    assert capfd.readouterr() == ("", "")  # Ray's own words are in Ray's logs


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes by /proc")
def test_a_corpus_is_encoded_as_by_one_process_although_an_actor_is_killed(
    ray: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare_module, "AT_ONCE", 50)
    for side in ("source", "target"):
        lines = (getattr(pair, side) for pair in islice(builtin_corpus("tatoeba-en-de").pairs(), 2000))
        (tmp_path / f"few.{side}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    wanted = Preparation([Corpus(tmp_path / "few.source", tmp_path / "few.target")], vocab_size=600)
    killed: list[int] = []

    def kill(stage: str, done: int) -> None:
        if stage == "encoding" and done >= 1000 and not killed:
            killed.append(actors("_Hand")[0])
            os.kill(killed[0], signal.SIGKILL)

    prepare(wanted, tmp_path / "one")
    prepare(wanted, tmp_path / "ray", kill, Hands(cluster="ray"))
    assert killed
    names = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file())
    assert len(names) >= 13
    for name in names:
        assert (tmp_path / "ray" / name).read_bytes() == (tmp_path / "one" / name).read_bytes(), name


def test_a_model_that_the_workers_do_not_see_is_said(ray: Any, text: Path, bundle: Bundle, tmp_path: Path) -> None:
    copy = tmp_path / "model"
    shutil.copytree(bundle.path, copy)
    opened = Bundle.open(copy)
    with pytest.raises(BundleError, match=r"does not see this model. .*shared file system"):
        translation(text, opened, tmp_path / "out").run("ray", 1, progress=lambda done, of: shutil.rmtree(copy))


def test_a_cluster_that_is_not_there(text: Path, bundle: Bundle, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no Ray cluster at 127.0.0.1:1\."):
        translation(text, bundle, tmp_path / "out").run("ray", address="127.0.0.1:1")


def test_without_ray(text: Path, bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"Ray is not installed. Run: pip install 'transduce\[cluster\]'"):
        translation(text, bundle, tmp_path / "out").run("ray")
