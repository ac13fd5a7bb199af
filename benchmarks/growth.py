"""How time and memory grow: of preparing with the corpus; of training and translating with sentences and vocabulary.

Prints a table each, with the exponent by which time grows from row to row (log of the times' ratio by log of the
sizes': 0 is not at all, 1 linear, 2 quadratic), and below it what Table 1 of the paper lets one expect: a layer's
attention costs n²·d, everything else n·d². Batches have as many tokens in every row, so what is linear in the length
has exponent 0 there. The model is that of the recipe "medium-corpus" with random weights; outputs are
forced to be as long as the sources.

    python benchmarks/growth.py [--large] [--plot growth.png] [--json growth.json]

Each row is a process of its own: the best of three after a warm-up, and its peak memory, PyTorch and all (Linux and
macOS). `--large` prepares 1,000,000 pairs too, which takes five minutes more; the rest takes up to three.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

PAIRS, MANY_PAIRS = [10_000, 100_000], 1_000_000
LENGTHS, VOCABULARIES = [8, 32, 128, 512], [1_000, 4_000, 16_000, 64_000]
LENGTH = 16
"""Of the sentences, where the vocabulary grows."""
VOCABULARY = 1_000
"""Where sentences grow: small, so that the projection does not hide what attention costs."""
STEP_TOKENS = 4096
DECODED_TOKENS = 512
"""For each thread: no more than the engine takes as one batch."""
REPEATS = 3
WIDTH, INNER, LAYERS = 128, 256, 4
"""d, d_ff and layers of either stack, as the recipe has them."""
FIRST_WORD = 4
"""Ids below are padding, start, end and unknown."""


@dataclass(frozen=True)
class Row:
    """What was measured at a size."""

    size: int
    units: int
    """Pairs or target tokens that the time was spent on."""
    seconds: float
    memory: int
    """Peak, in bytes."""

    @property
    def cost(self) -> float:
        """Seconds a unit."""
        return self.seconds / self.units


@dataclass(frozen=True)
class Table:
    """What is done, what of it grows, and what theory says."""

    title: str
    work: str
    grows: str
    sizes: list[int]
    expected: str
    unit: str = "token"

    def flops(self, size: int) -> float:
        """What a unit costs; for pairs in any unit, as it is always the same."""
        if self.work == "prepare":
            return 1.0
        length, vocabulary = (size, VOCABULARY) if self.grows == "length" else (LENGTH, size)
        if self.work == "step":  # the backward pass has two products for each of the forward pass
            return 3 * flops(length, vocabulary)
        return flops(length, vocabulary, looked_at=0.5)  # with a cache, what is there so far: half on average


def flops(length: int, vocabulary: int, looked_at: float = 1.0) -> float:
    """Of a forward pass, per target token, with sources as long; decoders look at a share of the target's positions."""
    square, inner = WIDTH * WIDTH, 2 * WIDTH * INNER
    encoder = 2 * (4 * square + inner) + 4 * length * WIDTH
    decoder = 2 * (8 * square + inner) + 4 * length * WIDTH * (1 + looked_at)  # cross-attention has projections too
    return LAYERS * (encoder + decoder) + 2 * WIDTH * vocabulary


def tables(large: bool) -> list[Table]:
    """All that is measured."""
    pairs = [*PAIRS, MANY_PAIRS] if large else PAIRS
    linear = "linear in pairs, but for the vocabulary, which is learned from 200,000 at most"
    attention, steps = "n²·d for attention, n·d² for the rest", "a step's fixed cost is shared by fewer and fewer rows"
    step, decoded = f"training step of {STEP_TOKENS:,} tokens", f"translating {DECODED_TOKENS} tokens a thread, greedy"
    by_length, by_vocabulary = f"vocabulary {VOCABULARY:,}", f"sentences of {LENGTH}"
    alone = f"translating one sentence, greedy, {by_length}"
    return [
        Table("preparing a corpus", "prepare", "pairs", pairs, linear, unit="pair"),
        Table(f"{step}, {by_length}", "step", "length", LENGTHS, attention),
        Table(f"{step}, {by_vocabulary}", "step", "vocabulary", VOCABULARIES, "6·d·V a token for the loss"),
        Table(f"{decoded}, {by_length}", "decode", "length", LENGTHS, f"{attention}; {steps}"),
        Table(alone, "sentence", "length", LENGTHS, f"{attention}; time has 1 more than a token's exponent"),
        Table(f"{decoded}, {by_vocabulary}", "decode", "vocabulary", VOCABULARIES, "2·d·V a token for the logits"),
    ]


def main() -> None:
    """Measure each size in a process of its own, and print a table as soon as it is complete."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help=f"prepare {MANY_PAIRS:,} pairs too")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="draw the tables, with matplotlib")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers")
    parser.add_argument("--measure", choices=WORK, help=argparse.SUPPRESS)
    parser.add_argument("--grows", help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--directory", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(asdict(WORK[arguments.measure](arguments))))
        return
    draw = _drawing() if arguments.plot else None
    measured: list[tuple[Table, list[Row]]] = []
    with tempfile.TemporaryDirectory() as directory:
        for table in tables(arguments.large):
            measured.append((table, [measure(table, size, Path(directory)) for size in table.sizes]))
            print_table(*measured[-1])
    if arguments.json:
        numbers = [asdict(table) | {"rows": [asdict(row) for row in rows]} for table, rows in measured]
        arguments.json.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    if draw:
        draw(measured, arguments.plot)


def measure(table: Table, size: int, directory: Path) -> Row:
    """A row of a table, by a process that does nothing else."""
    if sys.stderr.isatty():
        print(f"\r\033[K{table.title}: {table.grows} {size:,}", end="", file=sys.stderr, flush=True)
    if table.work == "prepare":
        write_corpus(directory / f"{size}.tsv", size)
    command = [sys.executable, __file__, "--measure", table.work, "--grows", table.grows, "--size", str(size)]
    result = subprocess.run([*command, "--directory", str(directory)], stdout=subprocess.PIPE, text=True, check=False)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    if result.returncode:
        sys.exit(f"{table.title}: {table.grows} {size:,} failed.")
    return Row(**json.loads(result.stdout))


def print_table(table: Table, rows: list[Row]) -> None:
    """The rows, how they grow, and how they should."""
    print(f"{table.title}\n{table.grows:>12}{'ms':>12}{'µs/' + table.unit:>12}{'memory':>12}{'growth':>9}")
    for number, row in enumerate(rows):
        growth = f"{exponent(rows[number - 1], row):9.2f}" if number else ""
        print(f"{row.size:12,}{row.seconds * 1e3:12,.1f}{row.cost * 1e6:12,.1f}{row.memory / 2**20:9,.0f} MB{growth}")
    first, last = rows[0], rows[-1]
    expected, found = table.flops(last.size) / table.flops(first.size), last.cost / first.cost
    print(f"  Expected: {table.expected}.")
    sizes = f"{table.grows} {last.size:,} against {first.size:,}"
    print(f"  A {table.unit} at {sizes}: expected {expected:.2f}×, measured {found:.2f}×\n", flush=True)


def exponent(smaller: Row, larger: Row) -> float:
    """By which power of the size the time grows."""
    return math.log(larger.seconds / smaller.seconds) / math.log(larger.size / smaller.size)


def write_corpus(path: Path, pairs: int) -> None:
    """Sentences of the built-in corpus, over and over, their words shuffled and numbered, so that no two are alike."""
    from transduce.data.builtin import builtin_corpus

    generator = random.Random(1)
    sentences = [(pair.source.split(), pair.target.split()) for pair in builtin_corpus("tatoeba-en-de").pairs()]
    with path.open("w", encoding="utf-8") as file:
        for number in range(pairs):
            sides = (" ".join(generator.sample(words, len(words))) for words in sentences[number % len(sentences)])
            file.write("\t".join(f"{side} {number}" for side in sides) + "\n")


def prepare(arguments: argparse.Namespace) -> Row:
    """Clean, learn the vocabulary, encode; afresh each time."""
    from transduce.data.corpus import Corpus
    from transduce.training.recipes import find_recipe
    from transduce.training.run import TrainingRun

    corpus = Corpus(arguments.directory / f"{arguments.size}.tsv")

    def work() -> None:
        with tempfile.TemporaryDirectory(dir=arguments.directory) as fresh:
            TrainingRun(Path(fresh), find_recipe("medium-corpus")).prepare([corpus])

    return _best(work, arguments.size, arguments.size)


def step(arguments: argparse.Namespace) -> Row:
    """The gradient of one batch, as the training loop gets it."""
    import torch

    from transduce.model.workers import Workers
    from transduce.training.accumulate import Accumulator
    from transduce.training.allocator import freed_memory_kept
    from transduce.training.recipes import find_recipe
    from transduce.training.tasks.translation import TranslationBatch, TranslationTask

    length, model = _length_and_model(arguments)
    workers = Workers.suited_to(torch.device("cpu"), STEP_TOKENS)
    # Neither vocabularies nor corpora: the batch is made here.
    task = TranslationTask(model.train(), None, None, None, find_recipe("medium-corpus"), workers)  # type: ignore[arg-type]
    ids = torch.randint(FIRST_WORD, model.config.vocab_size, (3, STEP_TOKENS // length, length))
    with freed_memory_kept(), workers:
        accumulator = Accumulator(task, workers)

        def work() -> None:
            model.zero_grad()
            accumulator.add(TranslationBatch(*ids))

        return _best(work, arguments.size, STEP_TOKENS)


def decode(arguments: argparse.Namespace) -> Row:
    """Translations as long as their sources, of a batch for each thread or of one sentence."""
    import torch

    from transduce.decoding import DecodingOptions
    from transduce.engines.torch_engine import TorchEngine

    length, model = _length_and_model(arguments)
    engine = TorchEngine(model.eval())
    tokens = length if arguments.measure == "sentence" else DECODED_TOKENS * torch.get_num_threads()
    # The end of a sentence is one of its tokens, on both sides.
    sources = torch.randint(FIRST_WORD, model.config.vocab_size, (tokens // length, length - 1)).tolist()
    options = DecodingOptions(beam=1, min_length=length - 1, max_length_ratio=1.0, max_length_extra=0)
    return _best(lambda: engine.decode(sources, options), arguments.size, tokens)


def _length_and_model(arguments: argparse.Namespace) -> tuple[int, Any]:
    """The length of sentences, and a model with the vocabulary."""
    import torch

    from transduce.model import Transformer
    from transduce.training.recipes import find_recipe

    torch.manual_seed(1)
    length = arguments.size if arguments.grows == "length" else LENGTH
    vocabulary = arguments.size if arguments.grows == "vocabulary" else VOCABULARY
    config = find_recipe("medium-corpus").config(vocabulary)
    assert (config.d_model, config.d_ff, config.encoder_layers, config.decoder_layers) == (WIDTH, INNER, LAYERS, LAYERS)
    return length, Transformer(config)


def _best(work: Callable[[], object], size: int, units: int) -> Row:
    """The fastest of some repeats, after one that warms up."""
    seconds = []
    for _ in range(1 + REPEATS):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return Row(size, units, min(seconds[1:]), _peak_memory())


def _peak_memory() -> int:
    """Bytes. Linux counts what the parent held before us into ru_maxrss, but not into VmHWM."""
    import resource

    status = Path("/proc/self/status")
    if status.is_file() and (found := re.search(r"VmHWM:\s+(\d+) kB", status.read_text())):
        return int(found.group(1)) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _drawing() -> Callable[[list[tuple[Table, list[Row]]], Path], None]:
    """What draws the tables; asked for before anything is measured, so that a missing library costs no minutes."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("--plot needs matplotlib: pip install matplotlib", file=sys.stderr)
        sys.exit(2)

    def draw(measured: list[tuple[Table, list[Row]]], path: Path) -> None:
        figure = Figure(figsize=(14, 8), layout="constrained")
        for axes, (table, rows) in zip(figure.subplots(2, -(-len(measured) // 2)).flat, measured, strict=True):
            sizes, base = [row.size for row in rows], rows[0].cost / table.flops(rows[0].size)
            axes.loglog(sizes, [row.cost * 1e6 for row in rows], "o-", label="measured")
            axes.loglog(sizes, [table.flops(size) * base * 1e6 for size in sizes], "--", label="expected")
            costs = [row.cost * 1e6 for row in rows]
            axes.set(xlabel=table.grows, ylabel=f"µs per {table.unit}", ylim=(min(costs) / 3, max(costs) * 3))
            axes.set_title(table.title, fontsize=9)
            axes.legend()
        figure.savefig(path)

    return draw


WORK = {"prepare": prepare, "step": step, "decode": decode, "sentence": decode}


if __name__ == "__main__":
    main()
