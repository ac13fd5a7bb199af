"""The OpenAPI document says what the service does: schemathesis tries to find where it does not."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any


def test_schemathesis_finds_nothing(service: Any, tmp_path: Any) -> None:
    command = [
        sys.executable, "-m", "schemathesis.cli", "run", f"{service.url}/openapi.json", "--max-examples", "25",
        "--seed", "1", "--generation-database", "none", "--suppress-health-check", "all",
        "--request-timeout", "60",  # the first attention map loads PyTorch, which takes a busy machine its time
    ]  # fmt: skip
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONWARNINGS": "ignore"},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No issues found" in done.stdout
    assert service.get("/health")[0] == 200


def test_every_route_of_the_page_and_the_docs_is_in_it(service: Any) -> None:
    paths = set(service.get("/openapi.json")[1]["paths"])
    assert paths == {
        "/translate", "/languages", "/detect", "/frontend/settings", "/health", "/health/live", "/health/ready",
        "/v1/translate", "/v1/attention", "/v1/models", "/metrics",
    }  # fmt: skip
