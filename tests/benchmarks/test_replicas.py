"""The load test over two replicas: no request is lost when one of them is told to stop, nor when it is killed."""

from __future__ import annotations

import signal
import sys

import pytest

import replicas
from serving import by_command, unseen_sentences


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to catch")
def test_nothing_is_lost_when_a_replica_goes() -> None:
    sentences = unseen_sentences()[:10]
    expected = dict(zip(sentences, by_command(sentences), strict=True))
    bounds = replicas.Bounds(seconds=60, clients=3, requests=60)  # requests end a run, however slow the machine is
    report = replicas.measure(expected, bounds, nginx=None)
    assert list(report) == ["one replica", "two replicas", "one of two told to stop", "one of two killed"]
    for name, found in report.items():
        assert (found["failures"], found["different"]) == (0, 0), name
        assert found["answered"] == 60
        assert len(found["shares"]) == (1 if name == "one replica" else 2), "each replica has had its share"
    assert report["one of two told to stop"]["exit_code"] == 0
    assert report["one of two killed"]["exit_code"] == -signal.SIGKILL
