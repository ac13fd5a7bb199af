"""A bar where someone watches and waits; nothing where nobody does; and never a mark of it in the output."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from transduce.data.builtin import builtin_corpus

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs pseudo-terminals")

LINES = [pair.source for pair in builtin_corpus("tatoeba-en-de", "test").pairs()][:300]


def run_on_terminal(command: Sequence[str], folder: Path, *, stdout_too: bool) -> tuple[str, str]:
    """Output and what the terminal got; with `stdout_too` both are the terminal's."""
    ours, theirs = os.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100", "OMP_NUM_THREADS": "1"}
    with open(folder / "stdout.txt", "wb") as plain:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=theirs if stdout_too else plain, stderr=theirs, env=environment
        )
    os.close(theirs)
    screen = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # how a terminal without a program ends
            break
        if not part:
            break
        screen += part
    os.close(ours)
    assert process.wait() == 0, screen.decode()
    return (folder / "stdout.txt").read_text(encoding="utf-8"), screen.decode()


IMPATIENT = """
import sys
import transduce.cli.line_progress as module

def enter(progress, enter=module.LineProgress.__enter__):
    enter(progress)
    if sys.stderr.isatty():
        progress._timer.join()  # until the bar is there, however busy the machine
    return progress

module.PATIENCE, module.LineProgress.__enter__ = 0.01, enter
"""


def translate(*arguments: object, impatient: bool = False) -> list[str]:
    """The command with the built-in model; if impatient, the bar comes at once, and the work need not be long."""
    code = (IMPATIENT if impatient else "") + "from transduce.cli.main import main; main()"
    return [sys.executable, "-c", code, "translate", *map(str, arguments)]


def test_a_long_translation_shows_how_long_it_will_take_and_leaves_no_mark(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in LINES))
    command = translate("-i", tmp_path / "in.txt", impatient=True)
    silent = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True)
    assert silent.stderr == ""
    assert silent.stdout.count("\n") == len(LINES)

    output, screen = run_on_terminal(command, tmp_path, stdout_too=False)
    assert output == silent.stdout
    assert re.search(r"\d+ of 300 lines", screen)
    assert re.search(r"\d:\d\d:\d\d left", screen)

    _, screen = run_on_terminal(command, tmp_path, stdout_too=True)
    assert re.search(r"\d+ of 300 lines", screen)
    # What stays on the screen once drawing is undone: the lines, in their order.
    assert settled(screen).strip("\n") == silent.stdout.strip("\n")


def settled(screen: str) -> str:
    """A terminal's last contents: only what rich uses for a bar of one line is understood."""
    lines = [""]
    for token in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\r\n|\r|\n|[^\x1b\r\n]+", screen):
        if token == "\r\n":
            lines.append("")
        elif token == "\x1b[2K":
            lines[-1] = ""
        elif token == "\x1b[1A":
            lines.pop()
        elif not token.startswith(("\x1b", "\r")):
            lines[-1] += token
    return "\n".join(lines)


def test_a_short_translation_shows_no_bar(tmp_path: Path) -> None:
    output, screen = run_on_terminal(translate("Thank you.", "Good night."), tmp_path, stdout_too=False)
    assert len(output.splitlines()) == 2
    assert screen == ""


COUNTING = (
    IMPATIENT
    + """
from transduce.errors import InputError

def unreadable():
    raise InputError("not UTF-8.")

count = {"known": lambda: 4, "unknown": None, "unreadable": unreadable}[sys.argv[1]]
with module.LineProgress(count) as progress:
    for number in range(4):
        with progress.aside():
            print("line", number, flush=True)
        progress.advance(1)
        progress._bar.refresh()
"""
)


@pytest.mark.parametrize(
    ("kind", "shown"), [("known", "of 4 lines"), ("unknown", "3 lines"), ("unreadable", "3 lines")]
)
def test_lines_are_counted_whether_or_not_their_number_is_known(tmp_path: Path, kind: str, shown: str) -> None:
    output, screen = run_on_terminal([sys.executable, "-c", COUNTING, kind], tmp_path, stdout_too=False)
    assert output == "line 0\nline 1\nline 2\nline 3\n"
    assert shown in screen
    assert ("left" in screen) is (kind == "known")
    assert "\x1b[?25h" in screen  # the cursor is given back


def test_work_that_ends_before_the_bar_appears_leaves_none_behind(tmp_path: Path) -> None:
    code = (
        "import time\nimport transduce.cli.line_progress as module\nmodule.PATIENCE = 0.01\n"
        "def slow():\n    time.sleep(0.3)\n    return 4\n"
        "with module.LineProgress(slow) as progress:\n    time.sleep(0.1)\n    progress.advance(4)\n"
        "time.sleep(0.6)\n"
    )
    _, screen = run_on_terminal([sys.executable, "-c", code], tmp_path, stdout_too=False)
    assert screen == ""
