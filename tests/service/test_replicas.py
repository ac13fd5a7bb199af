"""What a load balancer needs of a replica: it says when not to be asked, leaves in good order and changes no model."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import signal
import subprocess
import sys
import threading
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from transduce.bundle import find_model

DEPLOY = Path(__file__).parents[2] / "deploy"
TEXT = "Where is the station?"
LONG = "My sister works in a hospital, and my brother would like to have a cup of coffee with her tomorrow."
ONE_AT_A_TIME = ("--workers", "1", "--batch-tokens", "1")


def test_alive_and_ready(service: Any) -> None:
    assert service.get("/health/live")[:2] == (200, {"status": "ok"})
    assert service.get("/health/ready")[:2] == (200, {"status": "ok"})


def test_the_example_files_ask_for_what_the_service_answers(service: Any) -> None:
    for path in re.findall(r"path: (/\S+)", (DEPLOY / "kubernetes" / "serve.yaml").read_text(encoding="utf-8")):
        assert service.get(path)[0] == 200
    (check,) = re.findall(r"HEALTHCHECK.*\\\n +CMD (\[.*\])", (DEPLOY / "Containerfile").read_text(encoding="utf-8"))
    code = json.loads(check)[2]
    for port, well in ((service.port, True), (1, False)):
        done = subprocess.run([sys.executable, "-c", code.replace(":5000/", f":{port}/")], stderr=subprocess.DEVNULL)
        assert (done.returncode == 0) is well


def test_a_full_queue_is_alive_but_not_ready(serve: Any) -> None:
    limits = ("--max-waiting", "20", "--max-characters", "9000", *ONE_AT_A_TIME)
    with serve("en-de", *limits, "--drain", "1") as service:
        client = threading.Thread(target=service.post, args=("/v1/translate", {"q": [LONG] * 60}))
        client.start()
        service.until_waiting(20)  # a service with nothing to do takes more than may wait
        status, answer, headers = service.get("/health/ready")
        assert (status, list(answer), headers["retry-after"]) == (503, ["error"], "1")
        assert service.get("/health/live")[0] == 200
        assert service.figure('refusals_total{reason="not ready"}') == 1
        client.join(60)
        assert service.get("/health/ready")[0] == 200
        if sys.platform != "win32":
            service.process.send_signal(signal.SIGTERM)
            assert service.process.wait(60) == 0, "it ends by itself when its time is over"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to catch")
def test_told_to_stop_it_is_not_ready_but_answers_until_a_balancer_has_noticed(serve: Any) -> None:
    with serve("en-de", "--drain", "300", *ONE_AT_A_TIME) as service:
        service.process.send_signal(signal.SIGTERM)
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=20)
        connection.request("GET", "/health/ready")
        response = connection.getresponse()
        assert (response.status, response.headers["connection"]) == (503, "close"), "others are to be asked instead"
        assert b"stopping" in response.read()
        assert service.get("/health/live")[0] == 200
        status, answer, _ = service.post("/v1/translate", {"q": TEXT})
        assert (status, answer["translations"][0]["text"][:3]) == (200, "Wo ")

        outcomes: list[int] = []
        accepted = threading.Thread(
            target=lambda: outcomes.append(service.post("/v1/translate", {"q": [LONG] * 40})[0])
        )
        accepted.start()
        service.until_waiting()
        service.process.send_signal(signal.SIGTERM)  # told twice, it takes no more at once
        accepted.join(60)
        assert outcomes == [200]
        assert service.process.wait(60) == 0
        with pytest.raises(ConnectionRefusedError):
            service.connection()


def files_of(folder: Path) -> dict[str, tuple[int, str]]:
    """What is in a folder, and since when."""
    return {
        str(path.relative_to(folder)): (
            path.stat().st_mtime_ns,
            sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in sorted([folder, *folder.rglob("*")])
    }


def test_a_model_without_write_permission_is_served_and_stays_as_it_is(serve: Any, tmp_path: Path) -> None:
    compiled = Path(shutil.copytree(find_model("en-de"), tmp_path / "models" / "compiled"))
    plain = Path(shutil.copytree(compiled, tmp_path / "models" / "plain", ignore=shutil.ignore_patterns("ctranslate2")))
    paths = sorted((tmp_path / "models").rglob("*"), reverse=True)
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = files_of(tmp_path / "models")
    try:
        with serve(compiled, plain) as service:
            for name in ("compiled", "plain"):
                status, answer, _ = service.post("/v1/translate", {"q": TEXT, "model": name})
                assert (status, answer["translations"][0]["text"][:3]) == (200, "Wo "), answer
            assert service.post("/v1/attention", {"q": TEXT, "model": "compiled"})[0] == 200
            assert len(service.get("/v1/models")[1]["models"]) == 2
        assert files_of(tmp_path / "models") == before
    finally:
        for path in reversed(paths):
            path.chmod(0o755 if path.is_dir() else 0o644)
