"""Standard input is answered line by line, as it comes, and whole files in blocks."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from transduce.cli.arriving_lines import ArrivingLines, PresentLines


def test_whoever_waits_for_an_answer_gets_it() -> None:
    command = [sys.executable, "-m", "transduce", "translate", "--beam", "1"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")
    assert process.stdin is not None
    assert process.stdout is not None
    watch = threading.Timer(60, process.kill)  # a test that fails should not hang
    watch.start()
    for question, answer in (
        ("Where is the station?", "Wo ist der Bahnhof?\n"),
        ("", "\n"),
        ("Thank you!", "Danke!\n"),
    ):
        process.stdin.write(question + "\n")
        process.stdin.flush()
        assert process.stdout.readline() == answer
    process.stdin.close()
    assert process.wait() == 0
    watch.cancel()
    process.stdout.close()


def test_what_has_arrived_is_taken_and_nothing_is_waited_for() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, encoding="utf-8") as file, os.fdopen(writing, "w", encoding="utf-8") as other:
        lines = ArrivingLines(file)
        assert lines.take(5, wait=False) == []
        other.write("one\ntwo\r\n")
        other.flush()
        taken = lines.take(1, wait=True)
        assert taken == ["one"]
        assert lines.take(5, wait=True) == ["two"]
        assert lines.take(5, wait=False) == []
        other.write("three\n\nfive")
        other.close()
        rest = [line for _ in range(4) for line in lines.take(2, wait=True)]
        assert rest == ["three", "", "five"]
        assert lines.take(5, wait=True) == []


def test_what_is_wrong_with_the_text_is_raised_where_it_is_taken() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, encoding="utf-8") as file:
        os.write(writing, b"\xff\xfe\n")
        os.close(writing)
        with pytest.raises(UnicodeDecodeError):
            ArrivingLines(file).take(5, wait=True)


def test_a_file_comes_in_blocks() -> None:
    lines = PresentLines(["a", "b", "c"])
    assert [lines.take(2, wait=False) for _ in range(3)] == [["a", "b"], ["c"], []]
