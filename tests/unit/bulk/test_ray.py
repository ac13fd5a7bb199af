"""The same over a real Ray: every line once and in order, also when a worker is killed."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from transduce.bulk import BulkTranslation
from transduce.bulk.cluster import connected
from transduce.bulk.records import records_of
from transduce.bundle import Bundle
from transduce.errors import BundleError, ConfigError

# Ray warns of its own ways, in threads of its own too.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    with connected(workers=2) as ray:
        yield ray


def translation(text: Path, bundle: Bundle, output: Path) -> BulkTranslation:
    return BulkTranslation(input=text, records=records_of(text), output=output, bundle=bundle, beam=1, block=16)


def actors() -> list[int]:
    """The processes of Ray's workers that translate, children of what this process has started."""
    parents, found = {}, []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if "MapWorker" in (path / "cmdline").read_text():
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
            killed.append(actors()[0])
            os.kill(killed[0], signal.SIGKILL)

    summary = translation(text, bundle, tmp_path / "out").run("ray", 2, progress=kill)
    assert killed
    assert summary.path.read_text(encoding="utf-8").split("\n")[:-1] == expected
    assert capfd.readouterr() == ("", "")  # Ray's own words are in Ray's logs


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
