"""Adam against PyTorch's own, Muon against its plain equation, and what they remember."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from transduce.model import Transformer, TransformerConfig
from transduce.training.optimise import Adam, Muon, make_optimizer, orthogonalised
from transduce.training.recipe import TrainingRecipe


def module() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 7), nn.Linear(7, 3))


def give_gradients(of: nn.Module, step: int) -> None:
    generator = torch.Generator().manual_seed(step)
    for number, parameter in enumerate(of.parameters()):
        # The last parameter has none at first, as a part of a model that takes no part in a loss.
        some = number < 3 or step > 2
        parameter.grad = torch.randn(parameter.shape, generator=generator) if some else None


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_same_as_pytorch(decay: float) -> None:
    ours, theirs = module(), module()
    mine = Adam(ours.parameters(), (0.9, 0.98), 1e-9, decay)
    reference = torch.optim.AdamW(theirs.parameters(), betas=(0.9, 0.98), eps=1e-9, weight_decay=decay, foreach=False)
    for step in range(1, 8):
        for model in (ours, theirs):
            give_gradients(model, step)
        mine.step(0.01 / step)
        reference.param_groups[0]["lr"] = 0.01 / step
        reference.step()
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, other)


def test_its_memory_goes_on_where_it_was() -> None:
    straight, interrupted = module(), module()
    whole = Adam(straight.parameters(), (0.9, 0.98), 1e-9)
    first = Adam(interrupted.parameters(), (0.9, 0.98), 1e-9)
    second = Adam(interrupted.parameters(), (0.9, 0.98), 1e-9)
    for step in range(1, 7):
        if step == 4:
            second.load(first.tensors())
        for model, optimizer in ((straight, whole), (interrupted, first if step < 4 else second)):
            give_gradients(model, step)
            optimizer.step(0.01)
    for one, other in zip(straight.parameters(), interrupted.parameters(), strict=True):
        assert torch.equal(one, other)
    assert all(parameter.grad is not None for parameter in straight.parameters())
    whole.forget_gradients()
    assert all(parameter.grad is None for parameter in straight.parameters())


def test_plain_adam_has_no_decay() -> None:
    assert make_optimizer(module(), TrainingRecipe(optimizer="adam", weight_decay=0.1)).decay == 0
    assert make_optimizer(module(), TrainingRecipe(optimizer="adamw", weight_decay=0.1)).decay == 0.1


def transformer() -> Transformer:
    torch.manual_seed(1)
    config = TransformerConfig.base(20, encoder_layers=1, decoder_layers=1, d_model=8, d_ff=24, heads=2)
    return Transformer(config)


def give_all_gradients(of: nn.Module, step: int) -> None:
    generator = torch.Generator().manual_seed(step)
    for parameter in of.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)


def test_orthogonalised_matrices_keep_their_directions() -> None:
    """UVᵀ of the singular value decomposition, but for singular values near 1 instead of 1."""
    matrices = torch.randn(3, 6, 10, generator=torch.Generator().manual_seed(2))
    found = orthogonalised(matrices)
    u, _, vt = torch.linalg.svd(matrices, full_matrices=False)
    middle = u.mT @ found @ vt.mT
    values = middle.diagonal(dim1=1, dim2=2)
    assert values.min() > 0.6
    assert values.max() < 1.25
    torch.testing.assert_close(middle, torch.diag_embed(values), atol=1e-5, rtol=0)


def test_muon_steps_are_the_plain_equation() -> None:
    """Against the decomposition itself, matrix by matrix: W^Q, W^K and W^V each by itself, tall ones as wide ones."""
    model = transformer()
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    give_all_gradients(model, 1)
    Muon(model, (0.9, 0.98), 1e-9, decay=0.1).step(0.01)
    layer = "encoder.layers.0"
    wanted = {
        f"{layer}.attention.qkv.weight": [(0, 8), (8, 16), (16, 24)],
        f"{layer}.attention.output.weight": [(0, 8)],
        f"{layer}.feedforward.inner.weight": [(0, 24)],
        f"{layer}.feedforward.outer.weight": [(0, 8)],
    }
    for name, places in wanted.items():
        parameter = model.get_parameter(name)
        for start, end in places:
            gradient, old = parameter.grad[start:end], before[name][start:end]  # type: ignore[index]
            change = (0.999 * old - parameter[start:end]) / (0.01 * 0.2 * max(gradient.shape) ** 0.5)
            # After one step the mean is a multiple of the gradient.
            torch.testing.assert_close(change.mT @ u_vt(gradient), u_vt(gradient).mT @ change, atol=1e-3, rtol=0)
            values = torch.linalg.svdvals(change.detach())
            assert values.min() > 0.6
            assert values.max() < 1.25


def u_vt(matrix: torch.Tensor) -> torch.Tensor:
    u, _, vt = torch.linalg.svd(matrix, full_matrices=False)
    return u @ vt


def test_muon_leaves_tables_and_vectors_to_adam() -> None:
    ours, theirs = transformer(), transformer()
    muon, adam = Muon(ours, (0.9, 0.98), 1e-9), Adam(theirs.parameters(), (0.9, 0.98), 1e-9)
    for step in (1, 2, 3):
        for model, optimizer in ((ours, muon), (theirs, adam)):
            give_all_gradients(model, step)
            optimizer.step(0.01)
    for (name, one), other in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        in_a_layer = one.dim() == 2 and "layers." in name
        assert torch.equal(one, other) != in_a_layer, name


def test_muons_memory_goes_on_where_it_was() -> None:
    straight, interrupted = transformer(), transformer()
    whole, first, second = (Muon(each, (0.9, 0.98), 1e-9) for each in (straight, interrupted, interrupted))
    for step in range(1, 7):
        if step == 4:
            second.load(first.tensors())
        for model, optimizer in ((straight, whole), (interrupted, first if step < 4 else second)):
            give_all_gradients(model, step)
            optimizer.step(0.01)
    for one, other in zip(straight.parameters(), interrupted.parameters(), strict=True):
        assert torch.equal(one, other)
    whole.forget_gradients()
    assert all(parameter.grad is None for parameter in straight.parameters())


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_unit_embeddings_are_the_usual_step_brought_back_to_length_one(optimizer: str) -> None:
    free, unit = transformer(), transformer()
    unit.load_state_dict(free.state_dict())
    for model, wanted in ((free, False), (unit, True)):
        recipe = TrainingRecipe(optimizer=optimizer, unit_embeddings=wanted)
        give_all_gradients(model, 1)
        make_optimizer(model, recipe).step(0.01)
    tables = {"source_embedding.tokens.weight", "target_embedding.tokens.weight", "projection.weight"}
    stepped, found = dict(free.named_parameters()), dict(unit.named_parameters())
    assert tables & set(found)
    for name, value in found.items():
        expected = nn.functional.normalize(stepped[name], dim=1) if name in tables else stepped[name]
        torch.testing.assert_close(value, expected)


def test_a_row_of_zeros_stays_one() -> None:
    """It has no direction to be of length 1 in, and must not become NaN."""
    table = nn.Embedding(3, 4)
    with torch.no_grad():
        table.weight[0] = 0
    table.weight.grad = torch.zeros(3, 4)
    make_optimizer(table, TrainingRecipe(unit_embeddings=True)).step(0.01)
    lengths = table.weight.detach().norm(dim=1)
    torch.testing.assert_close(lengths, torch.tensor([0.0, 1.0, 1.0]))
