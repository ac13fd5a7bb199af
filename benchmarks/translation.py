"""How fast translation is, against what a Python user would pick instead, on the same weights and sentences.

Text in, text out, with the built-in model and 1,000 sentences of the built-in Tatoeba test set:

    transduce        Translator.load("en-de").translate(sentences): CTranslate2, int8
    with shortlist   the same with a shortlist learned from the training set (`translate --shortlist`)
    CTranslate2      called by hand, with SentencePiece and its best settings here: int8, a worker a core
    transduce torch  the same on PyTorch, float32
    Hugging Face     MarianMT.generate in batches of 32 of like length, float32, holding the same weights: Marian's
                     sinusoids are the paper's in another order, so the model dimension is put in that order

Each has a process of its own, and they take turns, so that whatever else the machine does falls on all alike. Printed
for beam 4 and beam 1: sentences a second (median of the rounds), how many times as fast ours is (below 1: they are
faster), the median time of one sentence by itself, peak memory, BLEU, and how many translations are those of our
PyTorch engine.

    python benchmarks/translation.py [--rounds 5] [--sentences 1000] [--beams 4 1] [--json FILE]

Hugging Face is left out where `transformers` is not installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from results.commit import commit

MODEL, CORPUS = "en-de", "tatoeba-en-de"
ALONE = 100
"""Sentences that are translated one at a time."""

Translate = Callable[[list[str], int], list[str]]
"""Texts and beam in, texts out."""


def main() -> None:
    """Let the contestants take turns and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--beams", type=int, nargs="+", default=[4, 1])
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    parser.add_argument("--contestant", choices=CONTESTANTS, help=argparse.SUPPRESS)
    parser.add_argument("--directory", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.contestant:
        contend(CONTESTANTS[arguments.contestant](arguments.directory), arguments.sentences)
        return
    with tempfile.TemporaryDirectory() as directory:
        prepare(Path(directory) / MODEL)
        results = compare(arguments.beams, arguments.rounds, arguments.sentences, Path(directory) / MODEL)
    cores = os.cpu_count()
    print(f"\r{arguments.sentences} sentences, model {MODEL}, {cores} cores, {platform.machine()}, commit {commit()}")
    for beam in arguments.beams:
        print_table(beam, results[beam])
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def prepare(model: Path) -> None:
    """The built-in model, with a shortlist."""
    from transduce.bundle import Bundle, find_model
    from transduce.data.builtin import builtin_corpus
    from transduce.interop.shortlist import learn_shortlist, write_shortlist

    shutil.copytree(find_model(MODEL), model)
    vocabularies = Bundle.open(model).vocabularies()
    sides = zip(*builtin_corpus(CORPUS).pairs(), strict=True)
    tokenizers = (vocabularies.source, vocabularies.target)
    ids = (tokenizer.encode_batch(side) for tokenizer, side in zip(tokenizers, sides, strict=True))
    write_shortlist(learn_shortlist(zip(*ids, strict=True), vocabularies), vocabularies, model / "ctranslate2")


def compare(beams: list[int], rounds: int, sentences: int, model: Path) -> dict[int, dict[str, dict[str, Any]]]:
    """For each beam and contestant: `seconds` of each round, `latency` in each round, `memory`, `texts`."""
    names = [name for name in CONTESTANTS if name != "Hugging Face" or importlib.util.find_spec("transformers")]
    results: dict[int, dict[str, dict[str, Any]]] = {beam: {} for beam in beams}
    for beam in beams:  # a process for each, so that peak memory is that of this beam
        processes = {name: _start(name, sentences, model) for name in names}
        found = {name: {"seconds": [], "latency": []} for name in names}
        for number in range(rounds + 1):
            print(f"\rbeam {beam}, round {number} of {rounds}", end="", file=sys.stderr, flush=True)
            for job in ("together", "alone"):
                for name in _rotated(names, number):
                    answer = _ask(processes[name], job, beam)
                    found[name]["memory"] = answer["memory"]
                    if job == "together":
                        found[name]["texts"] = answer["texts"]
                    if number:  # the first round warms up
                        found[name]["seconds" if job == "together" else "latency"].append(answer["seconds"])
        for process in processes.values():
            assert process.stdin is not None
            process.stdin.close()
            process.wait()
        results[beam] = _judged(found, sentences)
    return results


def print_table(beam: int, results: dict[str, dict[str, Any]]) -> None:
    """A row a contestant."""
    ours = results["transduce"]
    print(f"\nbeam {beam:<12}{'sentences/s':>12}{'ratio':>8}{'one, p50':>11}{'memory':>9}{'BLEU':>7}{'as torch':>10}")
    for name, one in results.items():
        ratio = statistics.median(theirs / mine for mine, theirs in zip(ours["seconds"], one["seconds"], strict=True))
        print(
            f"{name:17}{one['rate']:12,.0f}{ratio:8.2f}{statistics.median(one['latency']) * 1e3:8.1f} ms"
            f"{one['memory'] / 2**20:7.0f} M{one['bleu']:7.2f}{one['as_torch']:10.1%}"
        )


def _judged(found: dict[str, dict[str, Any]], sentences: int) -> dict[str, dict[str, Any]]:
    """With rate, BLEU and likeness to our PyTorch engine instead of texts."""
    from transduce.evaluation import quick_bleu

    references = [pair.target for pair in _pairs(sentences)]
    plain = found["transduce torch"]["texts"]
    for one in found.values():
        texts = one.pop("texts")
        one["rate"] = len(texts) / statistics.median(one["seconds"])
        one["bleu"] = quick_bleu(texts, references)
        one["as_torch"] = sum(mine == theirs for mine, theirs in zip(plain, texts, strict=True)) / len(texts)
    return found


def contend(translate: Translate, sentences: int) -> None:
    """Translate whenever told to, all sentences together or one by one, and report."""
    sources = [pair.source for pair in _pairs(sentences)]
    for line in sys.stdin:
        job, beam = json.loads(line)
        answer: dict[str, Any] = {}
        if job == "together":
            started = time.perf_counter()
            answer["texts"] = translate(sources, beam)
            answer["seconds"] = time.perf_counter() - started
        else:
            times = []
            for source in sources[:ALONE]:
                started = time.perf_counter()
                translate([source], beam)
                times.append(time.perf_counter() - started)
            answer["seconds"] = statistics.median(times)
        answer["memory"] = _peak_memory()
        print(json.dumps(answer), flush=True)


def transduce_default(model: Path) -> Translate:
    """What a user gets who asks for nothing."""
    return _transduce(MODEL, "auto", shortlist=False)


def transduce_shortlist(model: Path) -> Translate:
    """With likely words only."""
    return _transduce(model, "auto", shortlist=True)


def transduce_torch(model: Path) -> Translate:
    """The engine with every option."""
    return _transduce(model, "torch", shortlist=False)


def _transduce(model: str | Path, engine: Any, shortlist: bool) -> Translate:
    from transduce import Translator

    translator = Translator.load(model, engine, shortlist)
    return lambda texts, beam: [each.text for each in translator.translate(texts, beam=beam)]


def ctranslate2_by_hand(model: Path) -> Translate:
    """As its documentation shows, with the settings that were best here."""
    import ctranslate2

    processor, path = _processor()
    cores = os.cpu_count() or 1
    translator = ctranslate2.Translator(str(path / "ctranslate2"), inter_threads=cores, intra_threads=1)

    def translate(texts: list[str], beam: int) -> list[str]:
        tokens = [[*pieces, "</s>"] for pieces in processor.encode(texts, out_type=str)]
        results = translator.translate_batch(tokens, beam_size=beam, length_penalty=0.6, max_batch_size=32)
        decoded: list[str] = processor.decode([result.hypotheses[0] for result in results])
        return decoded

    return translate


def huggingface(directory: Path) -> Translate:
    """MarianMT with our weights."""
    import torch

    processor, _ = _processor()
    model = marian()

    def translate(texts: list[str], beam: int) -> list[str]:
        sources = [[*ids, 2] for ids in processor.encode(texts)]
        order = sorted(range(len(sources)), key=lambda index: -len(sources[index]))
        found: dict[int, str] = {}
        for start in range(0, len(order), 32):
            batch = order[start : start + 32]
            longest = len(sources[batch[0]])
            rows = torch.tensor([sources[index] + [0] * (longest - len(sources[index])) for index in batch])
            with torch.inference_mode():
                written = model.generate(
                    input_ids=rows,
                    attention_mask=(rows != 0).long(),
                    num_beams=beam,
                    length_penalty=0.6,
                    early_stopping=beam > 1,  # as CTranslate2 stops; the other ways go on longer
                    max_new_tokens=longest + 50,
                )
            lines = processor.decode([[token for token in row if token > 2] for row in written.tolist()])
            found |= zip(batch, lines, strict=True)
        return [found[index] for index in range(len(texts))]

    return translate


def marian() -> Any:
    """Our model as Hugging Face's MarianMT, the model dimension in the order of its sinusoids."""
    import torch
    import transformers

    from transduce.bundle import Bundle, find_model

    transformers.logging.set_verbosity_error()
    ours = Bundle.open(find_model(MODEL)).model()
    config = ours.config
    assert (config.norm_position, config.tying, config.activation) == ("post", "all", "relu")
    sizes = {
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        "d_model": config.d_model,
    }
    for side in ("encoder", "decoder"):
        sizes |= {f"{side}_attention_heads": config.heads, f"{side}_ffn_dim": config.d_ff}
    special = {"pad_token_id": 0, "eos_token_id": 2, "bos_token_id": 1, "decoder_start_token_id": 1}
    theirs = transformers.MarianMTModel(
        transformers.MarianConfig(
            vocab_size=config.vocab_size, activation_function="relu", scale_embedding=True, max_position_embeddings=512,
            forced_eos_token_id=None, **sizes, **special,
        )
    ).eval()  # fmt: skip
    theirs.generation_config.update(**special, forced_eos_token_id=None, bad_words_ids=[[0], [1], [3]])
    order = torch.cat(
        (torch.arange(0, config.d_model, 2), torch.arange(1, config.d_model, 2))
    )  # all sines, all cosines

    def norm(mine: Any, other: Any) -> None:
        other.weight.copy_(mine.weight[order])
        other.bias.copy_(mine.bias[order])

    def attention(mine: Any, other: Any) -> None:
        for part, weight in zip((other.q_proj, other.k_proj, other.v_proj), mine.qkv.weight.chunk(3), strict=True):
            part.weight.copy_(weight[:, order])
            part.bias.zero_()
        other.out_proj.weight.copy_(mine.output.weight[order])
        other.out_proj.bias.zero_()

    def layer(mine: Any, other: Any) -> None:
        attention(mine.attention, other.self_attn)
        norm(mine.attention_residual.norm, other.self_attn_layer_norm)
        other.fc1.weight.copy_(mine.feedforward.inner.weight[:, order])
        other.fc1.bias.copy_(mine.feedforward.inner.bias)
        other.fc2.weight.copy_(mine.feedforward.outer.weight[order])
        other.fc2.bias.copy_(mine.feedforward.outer.bias[order])
        norm(mine.feedforward_residual.norm, other.final_layer_norm)

    with torch.no_grad():
        theirs.get_input_embeddings().weight.copy_(ours.source_embedding.tokens.weight[:, order])
        for mine, other in zip(ours.encoder.layers, theirs.model.encoder.layers, strict=True):
            layer(mine, other)
        for mine, other in zip(ours.decoder.layers, theirs.model.decoder.layers, strict=True):
            layer(mine, other)
            attention(mine.cross_attention, other.encoder_attn)
            norm(mine.cross_attention_residual.norm, other.encoder_attn_layer_norm)
    return theirs


CONTESTANTS: dict[str, Callable[[Path], Translate]] = {
    "transduce": transduce_default,
    "with shortlist": transduce_shortlist,
    "CTranslate2": ctranslate2_by_hand,
    "transduce torch": transduce_torch,
    "Hugging Face": huggingface,
}


def _processor() -> tuple[Any, Path]:
    """SentencePiece, and where the model is."""
    import sentencepiece

    from transduce.bundle import find_model

    path = find_model(MODEL)
    return sentencepiece.SentencePieceProcessor(model_file=str(path / "tokenizer.model")), path


def _pairs(sentences: int) -> list[Any]:
    from transduce.data.builtin import builtin_corpus

    return list(builtin_corpus(CORPUS, "test").pairs())[:sentences]


def _start(name: str, sentences: int, model: Path) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--contestant", name, "--directory", str(model)]
    command += ["--sentences", str(sentences)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")


def _rotated(names: list[str], by: int) -> list[str]:
    """Each goes first once, so that none always follows the same other."""
    start = by % len(names)
    return names[start:] + names[:start]


def _ask(process: subprocess.Popen[str], job: str, beam: int) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    time.sleep(0.5)  # until the threads of the one before have gone to sleep
    print(json.dumps([job, beam]), file=process.stdin, flush=True)
    line = process.stdout.readline()
    if not line:
        sys.exit(f"a contestant has stopped: {process.args}")
    answer: dict[str, Any] = json.loads(line)
    return answer


def _peak_memory() -> int:
    """Bytes. Linux counts what the parent held before us into ru_maxrss, but not into VmHWM."""
    import resource

    status = Path("/proc/self/status")
    if status.is_file() and (found := re.search(r"VmHWM:\s+(\d+) kB", status.read_text())):
        return int(found.group(1)) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    main()
