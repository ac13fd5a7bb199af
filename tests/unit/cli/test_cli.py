"""The command line as a user meets it: a process with arguments, output and an exit code."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

import transduce


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "transduce", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        **options,
    )  # type: ignore[call-overload, no-any-return]


def test_version() -> None:
    result = run("--version")
    assert (result.returncode, result.stdout) == (0, f"transduce {transduce.__version__}\n")


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["paper", "--help"]])
def test_help_is_instant_because_torch_is_not_imported(arguments: list[str]) -> None:
    code = (
        "import sys\n"
        "from transduce.cli.main import main\n"
        f"sys.argv = ['transduce', *{arguments!r}]\n"
        "try:\n    main()\n"
        "finally:\n    print('loaded:', sorted({'torch', 'numpy'} & set(sys.modules)))\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", check=False)
    assert result.returncode == 0, result.stderr
    assert "Usage: transduce" in result.stdout
    assert result.stdout.endswith("loaded: []\n")


def test_help_names_every_command() -> None:
    assert re.search(r"paper\s+Check this code against", run("--help").stdout)


def test_no_command_shows_the_help() -> None:
    result = run()
    assert "Usage: transduce" in result.stdout + result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["papr"], "No such command 'papr'. Did you mean 'paper', 'parse'?"),
        (["paper", "--lenght", "3"], "No such option: --lenght"),
        (["paper", "--length", "0"], "transduce: length=0 is too small. It must be at least 1."),
        (["paper", "--length", "5000"], "transduce: length=5000 is too long"),
        (["paper", "--length", "many"], "Invalid value for '--length'"),
        (["paper", "--vocabulary", "3"], "Invalid value for '--vocabulary'"),
    ],
)
def test_a_wrong_argument_is_one_message_and_exit_code_2(arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


RAISING = (
    "import sys, transduce.cli.main as cli\n"
    "from transduce.errors import InputError\n"
    "@cli.app.command()\n"
    "def fail() -> None:\n"
    "    raise InputError('line 3 is empty.', where='a.txt:3', remedy='Remove it.')\n"
    "cli.main()\n"
)


def fail(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", RAISING, *arguments], capture_output=True, text=True, encoding="utf-8", check=False
    )


def test_a_users_mistake_is_shown_without_traceback() -> None:
    result = fail("fail")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "transduce: a.txt:3: line 3 is empty. Remove it.\n"


@pytest.mark.parametrize("arguments", [["--debug", "fail"], ["fail", "--debug"]])
def test_debug_shows_the_traceback(arguments: list[str]) -> None:
    result = fail(*arguments)
    assert result.returncode != 0
    assert "Traceback (most recent call last)" in result.stderr
    assert "line 3 is empty" in result.stderr


def test_paper_prints_the_figures() -> None:
    result = run("paper")
    assert result.returncode == 0, result.stderr
    for figure in ("63,045,632", "214,171,648", "6.9877e-04", "O(n²·d)", "3,150,336"):
        assert figure in result.stdout
    assert "…" not in result.stdout, "nothing is cut off at 80 columns"
    assert "\x1b" not in result.stdout, "no colours when the output is not a terminal"


def test_paper_as_json() -> None:
    report = json.loads(run("paper", "--json", "--vocabulary", "32000", "--length", "50").stdout)
    base = report["table_3"][0]
    assert base["parameters"] == 44_101_632 + 32_000 * 512
    assert len(report["table_3"]) == 20
    assert report["table_1"]["kinds"][0]["operations"] == 50 * 50 * 512
    assert report["learning_rates"][1]["rate"] == pytest.approx(6.9877e-4, rel=1e-4)


def test_a_reader_that_leaves_early_is_no_error() -> None:
    command = f'"{sys.executable}" -m transduce paper --json | "{sys.executable}" -c "import sys; sys.stdin.readline()"'
    result = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert result.stderr == ""
