"""The command line as a user calls it, without loading PyTorch again for each call.

`transduce(...)` is what `python -m transduce ...` does: in a process of its own, which has ended when it returns. That
process is a fork of one that has loaded what most commands need, which takes seconds. Where there are no forks, and for
tests of what is loaded, of signals and of terminals, it is a new Python.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
import traceback
from functools import cache
from pathlib import Path
from typing import IO, Any, NoReturn

from transduce.cli.main import main

# One thread: the models are tiny, and results do not depend on how many cores a machine has.
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}


def transduce(*arguments: object, cwd: Path | None = None, text: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run `transduce` with some arguments, in a directory, with a text as its input."""
    command = [sys.executable, "-m", "transduce", *map(str, arguments)]
    if not hasattr(os, "fork"):
        return subprocess.run(
            command, cwd=cwd, input=text or "", capture_output=True, text=True, encoding="utf-8", env=ENVIRONMENT,
            check=False,
        )  # fmt: skip
    asked = {"arguments": command[3:], "cwd": str(cwd or Path.cwd()), "text": text or ""}
    process = _parent()
    assert process.stdin is not None
    assert process.stdout is not None
    print(json.dumps(asked), file=process.stdin, flush=True)
    code, out, error = json.loads(process.stdout.readline())
    return subprocess.CompletedProcess(command, code, out, error)


@cache
def _parent() -> subprocess.Popen[str]:
    """The process whose forks run commands; it ends with this one."""
    process = subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    )
    atexit.register(process.communicate)
    return process


def end_as_command(arguments: list[str]) -> NoReturn:
    """Be `transduce` with some arguments, in a fork, and end as it does."""
    sys.argv = ["transduce", *arguments]
    code: Any = 0
    try:
        main()
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _life(arguments: list[str], cwd: str, files: list[IO[bytes]]) -> NoReturn:
    for number, file in enumerate(files):
        os.dup2(file.fileno(), number)
    os.chdir(cwd)
    end_as_command(arguments)


def _answer(arguments: list[str], cwd: str, text: str) -> tuple[int, str, str]:
    """How a command ends, and what it says on both channels."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        given.write(text.encode())
        given.seek(0)
        child = os.fork()
        if child == 0:
            _life(arguments, cwd, [given, out, error])
        _, status = os.waitpid(child, 0)
        out.seek(0)
        error.seek(0)
        return os.waitstatus_to_exitcode(status), out.read().decode(), error.read().decode()


if __name__ == "__main__":
    import ctranslate2.specs  # noqa: F401
    import sacrebleu  # noqa: F401
    import torch.utils.tensorboard  # noqa: F401

    import transduce.training.run  # noqa: F401

    for line in sys.stdin:
        print(json.dumps(_answer(**json.loads(line))), flush=True)
