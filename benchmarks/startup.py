"""Where the time of a first `transduce translate "…"` goes, and how it compares with only importing PyTorch.

Whole processes are timed, in turns: the command, `python -c "import torch"`, and `python -c pass`. Then the command is
run once with `python -X importtime`, and imports are summed by top-level package; the rest is what the interpreter, the
model and the translation take.

    python benchmarks/startup.py [--rounds 15] [--packages 12]
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import time
from collections import Counter

TEXT = "Where is the station?"
COMMANDS = {
    "transduce translate": ["-m", "transduce", "translate", TEXT],
    "import torch": ["-c", "import torch"],
    "python alone": ["-c", "pass"],
}


def main() -> None:
    """Time the processes in turns, then look into the first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--packages", type=int, default=12, help="how many of the slowest to show")
    arguments = parser.parse_args()
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for number in range(arguments.rounds + 1):
        for name, command in COMMANDS.items():
            taken = seconds(command)
            if number:  # the first round fills the disk cache
                times[name].append(taken)
    print(f"{'':22}{'median':>10}{'fastest':>10}")
    for name, taken_each in times.items():
        print(f"{name:22}{statistics.median(taken_each) * 1e3:7.0f} ms{min(taken_each) * 1e3:7.0f} ms")
    rounds = zip(times["transduce translate"], times["import torch"], strict=True)
    ratio = statistics.median(ours / torch for ours, torch in rounds)
    print(f"translating takes {ratio:.2f} of the time that importing PyTorch takes\n")

    imports = import_times(COMMANDS["transduce translate"])
    if "torch" in imports:
        sys.exit("PyTorch was imported: it should not be.")
    total, alone = sum(imports.values()), sum(import_times(COMMANDS["python alone"]).values())
    print("imports, with -X importtime, which slows them")
    for package, taken in imports.most_common(arguments.packages):
        print(f"  {package:30}{taken * 1e3:7.1f} ms")
    print(f"  {'all':30}{total * 1e3:7.1f} ms, of which Python's own start {alone * 1e3:.1f} ms")


def seconds(command: list[str]) -> float:
    """How long a process takes from start to end."""
    started = time.perf_counter()
    subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def import_times(command: list[str]) -> Counter[str]:
    """Seconds that the modules of each top-level package take, those that they import not included."""
    command = [sys.executable, "-X", "importtime", *command]
    result = subprocess.run(command, check=True, capture_output=True, text=True, encoding="utf-8")
    found: Counter[str] = Counter()
    for own, module in re.findall(r"import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)", result.stderr):
        package = module.split(".")[0]
        found["standard library" if package in sys.stdlib_module_names else package] += int(own) / 1e6
    return found


if __name__ == "__main__":
    main()
