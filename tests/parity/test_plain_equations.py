"""The whole network written out once more, in the paper's words and without any of our layers."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from transduce.model import Transformer, TransformerConfig

D, HEADS, LAYERS, VOCABULARY = 12, 3, 2, 11


def attend(weights: dict[str, Tensor], name: str, x: Tensor, memory: Tensor, legal: Tensor) -> Tensor:
    """Section 3.2, one head at a time, one query at a time."""
    w_q, w_k, w_v = weights[f"{name}.qkv.weight"].split(D)
    d_k, heads = D // HEADS, []
    for h in range(HEADS):
        part = slice(h * d_k, (h + 1) * d_k)
        q, k, v = x @ w_q[part].T, memory @ w_k[part].T, memory @ w_v[part].T
        rows = []
        for t in range(len(x)):
            scores = torch.stack([q[t] @ k[s] / math.sqrt(d_k) for s in range(len(memory)) if legal[t, s]])
            values = torch.stack([v[s] for s in range(len(memory)) if legal[t, s]])
            share = scores.exp() / scores.exp().sum()
            rows.append((share.unsqueeze(1) * values).sum(0))
        heads.append(torch.stack(rows))
    return torch.cat(heads, dim=1) @ weights[f"{name}.output.weight"].T


def feed_forward(weights: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    """Equation 2."""
    inner = x @ weights[f"{name}.inner.weight"].T + weights[f"{name}.inner.bias"]
    return inner.clamp(min=0) @ weights[f"{name}.outer.weight"].T + weights[f"{name}.outer.bias"]


def norm(weights: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    scaled = centred / (centred.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()
    return scaled * weights[f"{name}.norm.weight"] + weights[f"{name}.norm.bias"]


def embed(matrix: Tensor, ids: Tensor) -> Tensor:
    """Sections 3.4 and 3.5."""
    x = matrix[ids] * math.sqrt(D)
    for position in range(len(ids)):
        for i in range(D // 2):
            angle = position / 10000 ** (2 * i / D)
            x[position, 2 * i] += math.sin(angle)
            x[position, 2 * i + 1] += math.cos(angle)
    return x


def transformer(weights: dict[str, Tensor], source: Tensor, target: Tensor) -> Tensor:
    """Figure 1, for one unpadded sentence."""
    matrix = weights["projection.weight"]
    everywhere = torch.ones(len(source), len(source), dtype=torch.bool)
    z = embed(matrix, source)
    for layer in (f"encoder.layers.{i}" for i in range(LAYERS)):
        attended = attend(weights, f"{layer}.attention", z, z, everywhere)
        z = norm(weights, f"{layer}.attention_residual", z + attended)
        z = norm(weights, f"{layer}.feedforward_residual", z + feed_forward(weights, f"{layer}.feedforward", z))
    past = torch.ones(len(target), len(target), dtype=torch.bool).tril()
    whole = torch.ones(len(target), len(source), dtype=torch.bool)
    y = embed(matrix, target)
    for layer in (f"decoder.layers.{i}" for i in range(LAYERS)):
        y = norm(weights, f"{layer}.attention_residual", y + attend(weights, f"{layer}.attention", y, y, past))
        crossed = attend(weights, f"{layer}.cross_attention", y, z, whole)
        y = norm(weights, f"{layer}.cross_attention_residual", y + crossed)
        y = norm(weights, f"{layer}.feedforward_residual", y + feed_forward(weights, f"{layer}.feedforward", y))
    return y @ matrix.T


@pytest.mark.parametrize("lengths", [(5, 4), (1, 1), (7, 9)])
def test_the_network_is_the_paper_written_out(lengths: tuple[int, int]) -> None:
    config = TransformerConfig.base(
        VOCABULARY, d_model=D, heads=HEADS, d_ff=20, encoder_layers=LAYERS, decoder_layers=LAYERS
    )
    model = Transformer(config).eval()
    for parameter in model.parameters():
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter, mean=0.5, std=0.3)
    source, target = (torch.randint(3, VOCABULARY, (length,)) for length in lengths)
    padded = torch.nn.functional.pad(source, (0, 3))  # the same sentence, padded in a batch
    weights = dict(model.state_dict())
    with torch.no_grad():
        expected = transformer(weights, source, target)
        torch.testing.assert_close(model(source[None], target[None])[0], expected, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(model(padded[None], target[None])[0], expected, atol=1e-5, rtol=1e-4)
