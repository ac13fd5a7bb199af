"""Train the paper's model on a toy task, measure it, and look at its attention. About half a minute on two cores.

The task: write a sequence of digits backwards. The network cannot do it without learning where to look, and its
attention shows that it has learned. Run it with: python examples/reverse_digits.py
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text
from torch.optim.swa_utils import AveragedModel

from transduce.decoding import DecodingOptions, decode
from transduce.model import Transformer, TransformerConfig
from transduce.training.schedule import noam

PAD, BOS, EOS = 0, 1, 2
FIRST_DIGIT = 3
STEPS, BATCH, WARMUP, LABEL_SMOOTHING = 1000, 64, 200, 0.1
RATE = 0.2  # of the paper's: its schedule is meant for batches a hundred times as large
AVERAGE_LAST, AVERAGE_EVERY = 5, 50


def make_model() -> Transformer:
    """The paper's network, small: 2+2 layers of width 64."""
    config = TransformerConfig.tiny(
        vocab_size=FIRST_DIGIT + 10, encoder_layers=2, decoder_layers=2, d_model=64, heads=4, dropout=0.0
    )
    return Transformer(config)


def random_digits(generator: random.Random) -> list[int]:
    """One to ten digits, as ids."""
    return [FIRST_DIGIT + generator.randrange(10) for _ in range(generator.randint(1, 10))]


def padded(sequences: list[list[int]]) -> torch.Tensor:
    """A batch [B, longest], padding at the end."""
    longest = max(map(len, sequences))
    return torch.tensor([sequence + [PAD] * (longest - len(sequence)) for sequence in sequences])


def train(model: Transformer, seed: int = 1) -> Iterator[tuple[int, float]]:
    """Adam, warm-up, label smoothing (§5) and averaged checkpoints (§6.1); yields each step and its loss."""
    generator = random.Random(seed)
    average = AveragedModel(model)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    model.train()
    for step in range(1, STEPS + 1):
        sources = [random_digits(generator) for _ in range(BATCH)]
        targets = [source[::-1] for source in sources]
        logits = model(padded([[*source, EOS] for source in sources]), padded([[BOS, *target] for target in targets]))
        loss = F.cross_entropy(
            logits.flatten(0, 1),
            padded([[*target, EOS] for target in targets]).flatten(),
            ignore_index=PAD,
            label_smoothing=LABEL_SMOOTHING,
        )
        for group in optimizer.param_groups:
            group["lr"] = RATE * noam(step, model.config.d_model, WARMUP)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % AVERAGE_EVERY == 0 and step > STEPS - AVERAGE_LAST * AVERAGE_EVERY:
            average.update_parameters(model)
        yield step, loss.item()
    model.load_state_dict(average.module.state_dict())


def exact_match(model: Transformer, sequences: list[list[int]], beam: int = 4) -> float:
    """The share of sequences that beam search writes backwards without a mistake."""
    hypotheses = decode(model, padded([[*source, EOS] for source in sequences]), DecodingOptions(beam=beam))
    right = [best.tokens == [*source[::-1], EOS] for (best, *_), source in zip(hypotheses, sequences, strict=True)]
    return sum(right) / len(right)


def unseen_digits(count: int, seed: int = 2) -> list[list[int]]:
    """Sequences of eight to ten digits from another seed: of the 10⁸ and more, training has seen some 20,000."""
    generator = random.Random(seed)
    return [[FIRST_DIGIT + generator.randrange(10) for _ in range(generator.randint(8, 10))] for _ in range(count)]


def draw_attention(console: Console, model: Transformer, digits: list[int]) -> None:
    """Cross-attention of the last layer: each row a digit that is written, each column one that is read."""
    model.eval()
    source, written = [*digits, EOS], [*digits[::-1], EOS]
    with torch.inference_mode():
        _, record = model.with_attention(torch.tensor([source]), torch.tensor([[BOS, *written[:-1]]]))
    weights_TS = record.cross[-1][0].mean(0)  # over heads
    names = {EOS: "end"} | {FIRST_DIGIT + digit: str(digit) for digit in range(10)}
    console.print(Text("     reads ", style="bold") + Text("".join(f"{names[token]:>5}" for token in source)))
    for row, token in zip(weights_TS.tolist(), written, strict=True):
        line = Text(f"writes {names[token]:>3} ", style="bold")
        for weight in row:
            shade = int(225 * weight)
            line.append(
                f"{weight:>5.0%}", style=f"rgb(255,255,255) on rgb({20 + shade // 8},{30 + shade // 2},{30 + shade})"
            )
        console.print(line)


def main() -> None:
    """Train, measure, look."""
    console = Console()
    torch.set_num_threads(1)  # tensors this small gain nothing from a second one
    torch.manual_seed(1)
    model = make_model()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    console.print(f"Learning to write digits backwards: {STEPS:,} steps, {parameters:,} parameters")
    columns = (TextColumn("step {task.completed:.0f}"), BarColumn(), TextColumn("loss {task.fields[loss]:.3f}"))
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=STEPS, loss=float("nan"))
        for step, loss in train(model):
            progress.update(task, completed=step, loss=loss)
    share = exact_match(model, unseen_digits(500))
    console.print(f"Of 500 unseen sequences, beam search writes {share:.1%} without a mistake.")
    console.print("\nWhere it looks while it writes (cross-attention, last layer, mean of heads):\n")
    draw_attention(console, model, unseen_digits(1)[0])
    sys.exit(0 if share > 0.99 else 1)


if __name__ == "__main__":
    main()
