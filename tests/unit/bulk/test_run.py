"""Every line once and in order, whatever happens to workers and to the run; another order is refused."""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from transduce.bulk import BulkTranslation
from transduce.bulk.cluster import threads_each
from transduce.bulk.records import Block, TextLines, records_of
from transduce.bundle import Bundle, find_model
from transduce.cli.main import app
from transduce.errors import BundleError, ConfigError, InputError, StorageError, TransduceError
from transduce.translation import Translation

BLOCK = 32


@pytest.fixture
def bulk(text: Path, bundle: Bundle, tmp_path: Path) -> Callable[..., BulkTranslation]:
    def make(**changes: Any) -> BulkTranslation:
        path = changes.pop("input", text)
        settings = {
            "records": records_of(path),
            "output": tmp_path / "out",
            "bundle": bundle,
            "beam": 1,
            "block": BLOCK,
        }
        return BulkTranslation(input=path, **(settings | changes))

    return make


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def parts(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("part-*")}


@pytest.mark.parametrize("workers", [1, 2])
def test_as_one_process_at_once(bulk: Callable[..., BulkTranslation], expected: list[str], workers: int) -> None:
    seen: list[tuple[int, int]] = []
    summary = bulk().run(workers=workers, progress=lambda done, of: seen.append((done, of)))
    assert lines_of(summary.path) == expected
    assert (summary.records, summary.resumed) == (len(expected), 0)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert (seen[0], seen[-1]) == ((0, len(expected)), (len(expected), len(expected)))
    assert sorted(path.name for path in summary.path.parent.iterdir()) == ["manifest.json", "translations.txt"]
    again = bulk().run()
    assert (again.resumed, again.path.read_bytes()) == (len(expected), summary.path.read_bytes())


def test_a_killed_worker_changes_nothing(bulk: Callable[..., BulkTranslation], expected: list[str]) -> None:
    killed: list[int] = []

    def kill(done: int, of: int) -> None:
        if done and not killed:
            worker = multiprocessing.active_children()[0]
            worker.kill()
            killed.append(worker.pid or 0)

    summary = bulk().run(workers=2, progress=kill)
    assert killed
    assert lines_of(summary.path) == expected


# A process of its own, which is killed when it has finished some blocks.
SCRIPT = """
import sys
from pathlib import Path
from transduce.bulk import BulkTranslation
from transduce.bulk.records import records_of
from transduce.bundle import Bundle, find_model
from transduce.cli.main import app
path, out = map(Path, sys.argv[1:])
bundle = Bundle.open(find_model("en-de"))
if __name__ == "__main__":
    BulkTranslation(input=path, records=records_of(path), output=out, bundle=bundle, beam=1, block=32).run()
"""


def test_a_killed_run_goes_on_with_what_is_left(
    bulk: Callable[..., BulkTranslation], text: Path, expected: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(text), str(out)])
    while process.poll() is None and not parts(out):
        time.sleep(0.002)
    process.kill()
    assert process.wait() != 0, "it was done before it could be killed"
    before = parts(out)
    assert before
    kept: list[dict[str, int]] = []
    summary = bulk().run(progress=lambda done, of: kept.append(parts(out)))
    assert summary.resumed == sum(min(BLOCK, len(expected) - BLOCK * int(name[5:10])) for name in before)
    assert kept[0].items() >= before.items()
    assert kept[-1].items() >= before.items(), "a finished block was written again"
    assert lines_of(summary.path) == expected


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_workers_end_with_a_run_that_is_killed(text: Path, tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(SCRIPT.replace(".run()", ".run(workers=2)"), encoding="utf-8")
    process = subprocess.Popen([sys.executable, script, text, tmp_path / "out"], stdout=subprocess.PIPE)
    while process.poll() is None and not parts(tmp_path / "out"):
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    assert process.stdout is not None
    assert process.stdout.read() == b""  # comes to an end only when the last who could write to it has
    process.wait()
    process.stdout.close()


@dataclass(frozen=True)
class Failing(TextLines):
    """Lines of which some cannot be written so often."""

    failures: list[int] = field(default_factory=list)

    def written(self, block: Block, translations: Sequence[Translation]) -> bytes:
        if block.number in self.failures:
            self.failures.remove(block.number)
            raise RuntimeError("out of luck")
        return super().written(block, translations)


def test_a_block_that_fails_is_tried_again(bulk: Callable[..., BulkTranslation], expected: list[str]) -> None:
    summary = bulk(records=Failing(failures=[1, 1, 3])).run()
    assert lines_of(summary.path) == expected


def test_a_block_that_always_fails_ends_it_and_the_rest_is_kept(
    bulk: Callable[..., BulkTranslation], expected: list[str], tmp_path: Path
) -> None:
    with pytest.raises(TransduceError, match="1 of 10 blocks could not be translated: RuntimeError: out of luck"):
        bulk(records=Failing(failures=[2] * 10)).run()
    assert len(parts(tmp_path / "out")) == 9
    summary = bulk().run()
    assert summary.resumed == len(expected) - BLOCK
    assert lines_of(summary.path) == expected


def begun(bulk: Callable[..., BulkTranslation], **changes: Any) -> None:
    """A folder whose first block is done."""

    def stop(done: int, of: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bulk(**changes).run(progress=stop)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"beam": 2}, "another beam: 1, now 2"),
        ({"raw": True}, "another raw: False, now True"),
        ({"to": "de"}, "another to: none, now de"),
        ({"engine": "torch"}, "another engine: auto, now torch"),
        ({"block": 16}, "another block"),
        ({"bundle": "en-fr"}, r"another model: en-de \(\w{8}\), now en-fr \(\w{8}\)"),
        ({"records": TextLines(as_json=True)}, "another json: False, now True"),
    ],
)
def test_another_order_is_refused(bulk: Callable[..., BulkTranslation], changes: dict[str, Any], words: str) -> None:
    begun(bulk)
    if "bundle" in changes:
        changes = {"bundle": Bundle.open(find_model(changes["bundle"]))}
    with pytest.raises(ConfigError, match=f"begun with {words}") as caught:
        bulk(**changes).run()
    assert "Give another folder, or delete this one." in str(caught.value)


def test_another_input_and_another_glossary_are_refused(
    bulk: Callable[..., BulkTranslation], text: Path, tmp_path: Path
) -> None:
    terms = tmp_path / "terms.tsv"
    terms.write_text("house\tHaus\n", encoding="utf-8")
    begun(bulk, glossary=terms)
    with pytest.raises(ConfigError, match=r"another glossary: terms.tsv \(\w{8}\), now none"):
        bulk().run()
    text.write_text(text.read_text(encoding="utf-8").replace("a", "e", 1), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"another input: big.txt \(\w{8}\), now big.txt \(\w{8}\)"):
        bulk(glossary=terms).run()


def test_a_folder_of_something_else_is_left_alone(bulk: Callable[..., BulkTranslation], tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").touch()
    with pytest.raises(InputError, match="something else than translations"):
        bulk().run()
    (tmp_path / "out" / "manifest.json").write_text("[]", encoding="utf-8")
    with pytest.raises(ConfigError, match="not what transduce wrote"):
        bulk().run()


def test_a_block_that_was_cut_off_is_noticed(bulk: Callable[..., BulkTranslation], tmp_path: Path) -> None:
    begun(bulk)
    part = tmp_path / "out" / "part-00000.txt"
    part.write_bytes(part.read_bytes()[:-20].rpartition(b"\n")[0])
    with pytest.raises(StorageError, match=r"part-00000.txt: this file should have 32 records"):
        bulk().run()
    part.unlink()
    bulk().run()


def test_an_empty_file_is_refused_and_a_bad_line_before_anything_is_translated(
    bulk: Callable[..., BulkTranslation], tmp_path: Path
) -> None:
    path = tmp_path / "in.txt"
    path.touch()
    with pytest.raises(InputError, match="there is nothing to translate"):
        bulk(input=path).run()
    path.write_bytes(b"good\n" * 100 + b"\xff\n")
    with pytest.raises(InputError, match=r"in.txt:101: not UTF-8"):
        bulk(input=path).run()
    assert not (tmp_path / "out").exists()


def test_a_model_that_changes_in_the_meantime_is_refused(
    bulk: Callable[..., BulkTranslation], bundle: Bundle, tmp_path: Path
) -> None:
    copy = tmp_path / "model"
    shutil.copytree(bundle.path, copy)

    def change(done: int, of: int) -> None:
        (copy / "ctranslate2" / "model.bin").write_bytes(b"other")

    with pytest.raises(BundleError, match="has another model here"):
        bulk(bundle=Bundle.open(copy)).run(progress=change)


@pytest.mark.parametrize(
    ("workers", "machines", "threads"),
    [(2, [2], 1), (1, [8], 8), (3, [8], 2), (2, [4, 4], 4), (3, [3, 3], 1), (9, [4], 1), (1, [], 1)],
)
def test_workers_have_as_many_threads_as_fit_on_the_machines(workers: int, machines: list[int], threads: int) -> None:
    assert threads_each(workers, machines) == threads


def command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "transduce", "translate", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, encoding="utf-8", check=False)


def test_from_the_command_line(text: Path, expected: list[str], lines: list[str], tmp_path: Path) -> None:
    packed = tmp_path / "big.jsonl.gz"
    packed.write_bytes(gzip.compress("".join(f"{json.dumps({'said': line})}\n" for line in lines).encode()))
    result = command("-i", packed, "--column", "said", "-o", f"{tmp_path / 'out'}/", "--beam", "1", "--workers", "2")
    assert (result.returncode, result.stderr) == (0, "")
    joined = tmp_path / "out" / "translations.jsonl"
    assert result.stdout == f"{len(lines)} lines: {joined}\n"
    found = [json.loads(line) for line in lines_of(joined)]
    assert [entry["said"] for entry in found] == lines
    assert [entry["translation"] for entry in found] == expected
    result = command("-i", packed, "--column", "said", "-o", tmp_path / "out", "--beam", "1")
    assert result.stdout == f"{len(lines)} lines, {len(lines)} of them before: {joined}\n"
    result = command("-i", packed, "--column", "said", "-o", tmp_path / "out", "--beam", "2")
    assert (result.returncode, result.stdout) == (2, "")
    assert "begun with another beam: 1, now 2. Give another folder" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "out/", "Hello."], "only a file can be translated into a folder"),
        (["-i", "big.jsonl", "-o", "out.txt"], "big.jsonl: records are for translating into a folder."),
        (["-i", "big.txt", "--workers", "2"], "--workers is for translating into a folder. Give one: -o out/"),
        (["-i", "big.txt", "-o", "out/", "--scores"], "--scores, --n-best and --sure are not for a folder."),
        (["-i", "big.txt", "-o", "out/", "--sure", "0.5"], "--scores, --n-best and --sure are not for a folder."),
        (["-i", "big.txt", "-o", "out/", "--ray-address", "x"], "--ray-address is for Ray. Add: --engine-cluster ray"),
        (["-i", "bug.txt", "-o", "out/"], "bug.txt: there is no such file. Did you mean 'big.txt'?"),
    ],
)  # fmt: skip
def test_mistakes_are_answered_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: Path, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(text.parent)
    (tmp_path / "big.jsonl").touch()
    with pytest.raises(TransduceError) as caught:
        app(["translate", *arguments], standalone_mode=False)
    assert words in str(caught.value)
    assert not (tmp_path / "out").exists()
