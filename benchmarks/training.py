"""How fast training is, against what a Python user would pick instead.

Our training loop, a straightforward loop around `torch.nn.Transformer`, and Hugging Face's MarianMT train on the same
batches of the built-in Tatoeba corpus (same vocabulary, token budget, sizes, label smoothing, Adam). Each has a process
of its own; they take turns, so that whatever else the machine does falls on all alike. The peers get their batches
ready-made; ours makes its own, as in real training. Printed: target tokens a second (median over the rounds), peak
memory, ours as a multiple of theirs, and the share of the matrix products that the processor could do at best.

    python benchmarks/training.py [--size tiny|base] [--rounds 5] [--batches 20] [--tokens 4096] [--threads 2]

Peers run a second time with glibc told to keep large buffers ("allocator set": PyTorch gives each operation's buffers
back to the kernel and gets them page by page; few users know). Hugging Face is left out where `transformers` is not
installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

SIZES = {
    "tiny": {"d_model": 128, "d_ff": 256, "encoder_layers": 4, "decoder_layers": 4, "heads": 4},
    "base": {"d_model": 512, "d_ff": 2048, "encoder_layers": 6, "decoder_layers": 6, "heads": 8},
}
VOCABULARY = 8000
NAMES = {
    "transduce": "transduce",
    "torch": "nn.Transformer",
    "huggingface": "Hugging Face MarianMT",
    "torch-set": "nn.Transformer, allocator set",
    "huggingface-set": "Hugging Face, allocator set",
}
ALLOCATOR = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1), "MALLOC_ARENA_MAX": "1"}
"""As `transduce.training.allocator` sets it for ours: neither maps nor gives back, and one heap for all threads."""


def main() -> None:
    """Run the contestants in turn and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=20, help="trained on in each round")
    parser.add_argument("--tokens", type=int, default=4096, help="of a batch, on each side")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--against", nargs="*", choices=list(NAMES)[1:], default=list(NAMES)[1:], metavar="PEER")
    parser.add_argument("--contestant", choices=NAMES, help=argparse.SUPPRESS)
    parser.add_argument("--directory", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.contestant:
        contend(arguments)
        return
    with tempfile.TemporaryDirectory() as directory:
        prepare(Path(directory))
        compare(arguments, directory)


def compare(arguments: argparse.Namespace, directory: str) -> None:
    """Let each contestant train a round at a time."""
    found = importlib.util.find_spec("transformers") is not None
    names = ["transduce", *(name for name in arguments.against if found or "huggingface" not in name)]
    contestants = {name: _start(name, arguments, directory) for name in names}
    rates: dict[str, list[float]] = {name: [] for name in names}
    last: dict[str, dict[str, float]] = {}
    for number in range(arguments.rounds + 1):
        for name, process in contestants.items():
            assert process.stdin is not None
            assert process.stdout is not None
            time.sleep(0.5)  # until the threads of the one before have gone to sleep
            print("go", file=process.stdin, flush=True)
            last[name] = json.loads(process.stdout.readline())
            if number:  # the first round warms up
                rates[name].append(last[name]["tokens"] / last[name]["seconds"])
        print(f"\rround {number} of {arguments.rounds}", end="", file=sys.stderr, flush=True)
    for process in contestants.values():
        process.terminate()
        process.wait()
    peak = gemm_peak(arguments.threads)
    print(
        f"\r{arguments.size}, batches of {arguments.tokens} tokens, vocabulary {VOCABULARY}, "
        f"{arguments.threads} threads; matrix products at best {peak / 1e9:.0f} GFLOP/s\n"
    )
    print(f"{'':32}{'tokens/s':>10}{'of peak':>10}{'ours':>8}{'memory':>10}{'ours':>8}")
    for name in names:
        rate, memory = statistics.median(rates[name]), last[name]["memory"]
        ratio = statistics.median(mine / theirs for mine, theirs in zip(rates["transduce"], rates[name], strict=True))
        share = rate * max(told["flops"] for told in last.values()) / peak
        less = last["transduce"]["memory"] / memory
        print(f"{NAMES[name]:32}{rate:10,.0f}{share:10.0%}{ratio:7.2f}×{memory / 2**20:7,.0f} MB{less:7.2f}×")


def _start(name: str, arguments: argparse.Namespace, directory: str) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--contestant", name, "--directory", directory]
    for option in ("size", "batches", "tokens", "threads"):
        command += [f"--{option}", str(getattr(arguments, option))]
    environment = os.environ | {"OMP_NUM_THREADS": str(arguments.threads), "MKL_NUM_THREADS": str(arguments.threads)}
    if name.endswith("-set"):
        environment |= ALLOCATOR
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def prepare(directory: Path) -> None:
    """Encode the corpus once, for all."""
    _run(directory, "tiny", 4096).prepare([_corpus("train")], [_corpus("dev")])


def contend(arguments: argparse.Namespace) -> None:
    """Train a round whenever told to, and report."""
    import resource

    rounds = ours(arguments) if arguments.contestant == "transduce" else peer(arguments)
    for _ in sys.stdin:
        tokens, seconds, flops = next(rounds)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps({"tokens": tokens, "seconds": seconds, "flops": flops, "memory": memory}), flush=True)


def ours(arguments: argparse.Namespace) -> Iterator[tuple[int, float, float]]:
    """The product's own loop, whole: batches made on the way, averaged weights, clipping, events."""
    import queue
    import threading

    from transduce.training.events import Event, Stepped

    run = _run(arguments.directory, arguments.size, arguments.tokens)
    prepared = run.prepare([_corpus("train")], [_corpus("dev")])
    go: queue.Queue[bool] = queue.Queue()
    done: queue.Queue[tuple[int, float, float]] = queue.Queue()
    steps: list[int] = []
    started = 0.0

    def note(event: Event) -> None:
        if isinstance(event, Stepped):
            steps.append(event.tokens)

    def pause() -> bool:  # asked between steps
        nonlocal started
        if len(steps) % arguments.batches == 0:
            if steps:
                done.put((sum(steps[-arguments.batches :]), time.perf_counter() - started, 0.0))
            go.get()
            started = time.perf_counter()
        return False

    threading.Thread(target=lambda: run.train(prepared, note, pause), daemon=True).start()
    while True:
        go.put(True)
        yield done.get()


def peer(arguments: argparse.Namespace) -> Iterator[tuple[int, float, float]]:
    """What one writes with PyTorch and a model that is already there."""
    import torch
    import torch.nn.functional as F
    from torch.utils.flop_counter import FlopCounterMode

    torch.manual_seed(1)
    model = torch_model(arguments.size) if "torch" in arguments.contestant else huggingface_model(arguments.size)
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)
    batches = list(_batches(arguments))
    with FlopCounterMode(display=False) as counter:
        model(*batches[0][:2]).sum().backward()
    flops = counter.get_total_flops() / int((batches[0][2] != 0).sum())
    position = 0
    while True:
        tokens, started = 0, time.perf_counter()
        for _ in range(arguments.batches):
            source, target, labels = batches[position % len(batches)]
            position += 1
            optimizer.zero_grad()
            logits = model(source, target)
            loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=0, label_smoothing=0.1)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            tokens += int((labels != 0).sum())
        yield tokens, time.perf_counter() - started, flops


def torch_model(size: str):  # type: ignore[no-untyped-def]
    """`nn.Transformer` of the same sizes."""
    from plain_transformer import PlainTransformer

    sizes = SIZES[size]
    layers = sizes["encoder_layers"], sizes["decoder_layers"]
    return PlainTransformer(VOCABULARY, sizes["d_model"], sizes["heads"], layers, sizes["d_ff"])


def huggingface_model(size: str):  # type: ignore[no-untyped-def]
    """MarianMT of the same sizes."""
    from torch import nn
    from transformers import MarianConfig, MarianMTModel

    sizes = SIZES[size]
    marian = MarianMTModel(
        MarianConfig(
            vocab_size=VOCABULARY,
            d_model=sizes["d_model"],
            encoder_layers=sizes["encoder_layers"],
            decoder_layers=sizes["decoder_layers"],
            encoder_attention_heads=sizes["heads"],
            decoder_attention_heads=sizes["heads"],
            encoder_ffn_dim=sizes["d_ff"],
            decoder_ffn_dim=sizes["d_ff"],
            activation_function="relu",
            dropout=0.1,
            max_position_embeddings=1024,
            scale_embedding=True,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
            decoder_start_token_id=1,
            forced_eos_token_id=None,
        )
    )

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.marian = marian

        def forward(self, source, target):  # type: ignore[no-untyped-def]
            mask = (source != 0).long()
            return self.marian(input_ids=source, attention_mask=mask, decoder_input_ids=target, use_cache=False).logits

    return Model()


def gemm_peak(threads: int) -> float:
    """Floating-point operations a second of a large matrix product, the best of ten."""
    import torch

    torch.set_num_threads(threads)
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    best = float("inf")
    for _ in range(10):
        started = time.perf_counter()
        a @ b
        best = min(best, time.perf_counter() - started)
    return 2 * 1024**3 / best


def _corpus(split: str):  # type: ignore[no-untyped-def]
    from transduce.data.builtin import builtin_corpus

    return builtin_corpus("tatoeba-en-de", split)


def _run(directory: Path, size: str, tokens: int):  # type: ignore[no-untyped-def]
    from transduce.training.recipes import find_recipe
    from transduce.training.run import TrainingRun

    settings = [f"model.{name}={value}" for name, value in SIZES[size].items()]
    settings += [f"training.batch_tokens={tokens}", f"tokenizer.vocab_size={VOCABULARY}", "budget.minutes=null"]
    settings += ["training.validate_every=1000000", "training.checkpoint_every=1000000"]
    return TrainingRun(directory, find_recipe("medium-corpus").with_overrides(settings))


def _batches(arguments: argparse.Namespace):  # type: ignore[no-untyped-def]
    """Source, decoder input and labels of as many batches as a run of some rounds needs."""
    from itertools import islice

    import torch

    from transduce.model import Transformer
    from transduce.training.tasks.translation import DevSet, TranslationTask

    run = _run(arguments.directory, arguments.size, arguments.tokens)
    prepared = run.prepare([_corpus("train")], [_corpus("dev")])
    with torch.device("meta"):
        model = Transformer(run.recipe.config(VOCABULARY))
    dev = DevSet(prepared.dev, prepared.dev_sources, prepared.dev_references)
    task = TranslationTask(model, prepared.vocabularies, prepared.train, dev, run.recipe)
    task.device = torch.device("cpu")
    return islice(task.batches(0, 0), 100)


if __name__ == "__main__":
    main()
