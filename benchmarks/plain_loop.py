"""What a plain loop with the paper's settings comes to in the minutes that a built-in model was trained for.

    python benchmarks/plain_loop.py en-de tatoeba-en-de --minutes 78 -o plain-en-de [--threads 1] [--tokens 2048]

`torch.nn.Transformer` as it is, in the loop that one writes around it: the shape and the vocabulary of the built-in
model, Adam, warm-up, dropout and label smoothing as in the paper (§5), its mean of the last five checkpoints (§6.1) and
its beam search (beam 4, α 0.6). But batches are of 2,048 tokens, sentences of like length together, as ours are: with
the paper's 25,000 a core would make a few hundred steps. Minutes are of processor time. Stop it when you like: the same
command goes on from the last checkpoint.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from plain_transformer import PlainTransformer
from results.commit import commit
from transduce.bundle import Bundle, find_model
from transduce.data.batches import BatchPlan, Indices
from transduce.data.builtin import builtin_corpus
from transduce.data.prepare import Preparation, Prepared, prepare
from transduce.data.shards import Pairs
from transduce.decoding import DecodingOptions, decode
from transduce.evaluation import evaluate, quick_bleu
from transduce.text.tokenizer import BOS, EOS, PAD
from transduce.training.schedule import noam
from transduce.training.task import tensor

CHECKPOINTS, AVERAGED = 20, 5
"""Checkpoints of a run, at equal times, and how many of the last ones are averaged."""
CPU = torch.device("cpu")


def main() -> None:
    """Train, then measure the mean of the last checkpoints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("like", help="built-in model whose shape and vocabulary are taken")
    parser.add_argument("corpus", help="built-in corpus")
    parser.add_argument("--minutes", type=float, required=True, help="of processor time")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=2048, help="of a batch, on each side")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    bundle = Bundle.open(find_model(options.like))
    vocabularies = bundle.vocabularies()
    corpora = [builtin_corpus(options.corpus, split) for split in ("train", "dev")]
    preparation = Preparation(corpora[:1], corpora[1:], vocabularies=vocabularies)
    prepared = prepare(preparation, options.output / "prepared")
    model = PlainTransformer(vocabularies.source.size, **shape(bundle))
    print(f"{sum(each.numel() for each in model.parameters()):,} parameters, commit {commit()}", flush=True)

    def translated(pairs: Pairs, beam: int) -> list[str]:
        found = [""] * len(pairs)
        for indices in BatchPlan(pairs, 2000, shuffle=False).epoch(0):
            wanted = DecodingOptions(beam=beam, suppress=vocabularies.target.unwritten)
            for index, (best, *_) in zip(indices, decode(model, batch(pairs, indices)[0], wanted), strict=True):
                found[index] = vocabularies.target.decode(best.tokens)
        return found

    def validated() -> float:
        return quick_bleu(translated(prepared.dev, beam=1), prepared.dev_references)

    train(model, prepared, options, validated)
    test = prepare(
        Preparation(corpora[:1], [builtin_corpus(options.corpus, "test")], vocabularies=vocabularies),
        options.output / "test",
    )
    found = evaluate(translated(test.dev, beam=4), test.dev_references, metrics=("bleu", "chrf"))
    bleu = found.scores["bleu"]
    print(f"test: BLEU {bleu.value:.2f} ({bleu.low:.1f} to {bleu.high:.1f}), chrF {found.chrf:.2f}\n{bleu.signature}")
    numbers = {"bleu": found.bleu, "chrf": found.chrf, "signature": bleu.signature, "commit": commit()}
    (options.output / "scores.json").write_text(json.dumps(numbers, indent=2) + "\n", encoding="utf-8")


def shape(bundle: Bundle) -> dict[str, object]:
    """Of a built-in model, for `PlainTransformer`."""
    config = bundle.config.architecture
    layers = config["encoder_layers"], config["decoder_layers"]
    return {"d_model": config["d_model"], "heads": config["heads"], "layers": layers, "d_ff": config["d_ff"]}


def batch(pairs: Pairs, indices: Indices) -> list[Tensor]:
    """The encoder's input, the decoder's, and what the decoder should say."""
    sources, targets = ([pairs.ids(side, int(index)).tolist() for index in indices] for side in ("source", "target"))
    rows = [[[*ids, EOS] for ids in sources], [[BOS, *ids] for ids in targets], [[*ids, EOS] for ids in targets]]
    return [tensor(CPU, side) for side in rows]


def train(
    model: PlainTransformer, prepared: Prepared, options: argparse.Namespace, validated: Callable[[], float]
) -> None:
    """The loop; at its end the model has the mean of the last checkpoints."""
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    folder: Path = options.output / "checkpoints"
    folder.mkdir(parents=True, exist_ok=True)
    saved = sorted(folder.glob("*.pt"))
    step, seconds = 0, 0.0
    if saved:
        state = torch.load(saved[-1], weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step, seconds = state["step"], state["seconds"]
    budget, number = options.minutes * 60, len(saved)
    batches = endless(BatchPlan(prepared.train, options.tokens), prepared.train, step)
    model.train()
    while number < CHECKPOINTS:
        started = time.process_time()
        step += 1
        source, target, labels = next(batches)
        for group in optimizer.param_groups:
            group["lr"] = noam(step, model.embedding.embedding_dim, 4000)
        optimizer.zero_grad()
        logits = model(source, target)
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=PAD, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        seconds += time.process_time() - started
        if seconds >= budget * (number + 1) / CHECKPOINTS:
            number += 1
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step, "seconds": seconds}
            torch.save(state, folder / "part")
            os.replace(folder / "part", folder / f"{number:02}.pt")
            note = f", dev BLEU {validated():.2f} (greedy)" if number % 5 == 0 else ""
            print(f"{seconds / 60:.1f} minutes, step {step}, loss {loss.item():.3f}{note}", flush=True)
    last = [torch.load(path, weights_only=True)["model"] for path in sorted(folder.glob("*.pt"))[-AVERAGED:]]
    model.load_state_dict({name: torch.stack([each[name] for each in last]).mean(0) for name in last[0]})


def endless(plan: BatchPlan, pairs: Pairs, start: int) -> Iterator[list[Tensor]]:
    """Batches, epoch after epoch, from the one after number `start` on."""
    chosen = itertools.chain.from_iterable(plan.epoch(epoch) for epoch in itertools.count())
    return (batch(pairs, indices) for indices in itertools.islice(chosen, start, None))


if __name__ == "__main__":
    main()
