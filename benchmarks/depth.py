"""Which starting values train deep post-norm stacks? Prints the loss on the way, for each depth and initialisation.

The task is that of examples/reverse_digits.py; its loss cannot fall below about 0.53, the entropy of label smoothing.
Run it with: python benchmarks/depth.py [steps [seed]]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
import reverse_digits

from transduce.model import Transformer

CASES = [
    (2, "post", "xavier"),
    (2, "post", "depth_scaled"),
    (6, "post", "xavier"),
    (6, "post", "depth_scaled"),
    (12, "post", "xavier"),
    (12, "post", "depth_scaled"),
    (12, "pre", "xavier"),
    (18, "post", "depth_scaled"),
]


def main() -> None:
    """Train each case for the same steps, with the same data and the same seed."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 600
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    torch.set_num_threads(1)
    reverse_digits.STEPS = steps
    print(f"torch {torch.__version__}, seed {seed}, mean loss of 50 steps up to step:")
    points = range(100, steps + 1, 100)
    print("layers  norm  initialisation " + "".join(f"{point:>7}" for point in points) + "  minutes")
    for layers, norm_position, initialisation in CASES:
        torch.manual_seed(seed)
        config = reverse_digits.make_model().config.replace(
            encoder_layers=layers, decoder_layers=layers, norm_position=norm_position, initialisation=initialisation
        )
        start = time.perf_counter()
        losses = [loss for _, loss in reverse_digits.train(Transformer(config), seed)]
        minutes = (time.perf_counter() - start) / 60
        means = "".join(f"{sum(losses[point - 50 : point]) / 50:7.3f}" for point in points)
        print(f"{layers:2}+{layers:<2}   {norm_position:5} {initialisation:14} {means}  {minutes:7.1f}", flush=True)


if __name__ == "__main__":
    main()
