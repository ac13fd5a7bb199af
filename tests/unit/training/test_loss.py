"""The chunked loss against PyTorch's own, value and gradients."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from transduce.model.dropout import randomness
from transduce.training.candidates import Candidates, candidates
from transduce.training.loss import CHUNK, r_drop_loss, regularised_loss, smoothed_cross_entropy

PAD = 0


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("rows", [1, CHUNK // 7, CHUNK // 7 + 30])
def test_the_loss_is_pytorchs_summed_over_real_tokens(smoothing: float, rows: int) -> None:
    hidden = torch.randn(rows, 7, 16, requires_grad=True)
    weight = torch.randn(50, 16, requires_grad=True)
    labels = torch.randint(1, 50, (rows, 7))
    labels[:, 5:] = PAD
    labels[0, 1:] = PAD
    ours = smoothed_cross_entropy(hidden, weight, labels, PAD, smoothing)
    logits = (hidden @ weight.T).flatten(0, 1)
    theirs = F.cross_entropy(logits, labels.flatten(), ignore_index=PAD, label_smoothing=smoothing, reduction="sum")
    plain = F.cross_entropy(logits, labels.flatten(), ignore_index=PAD, reduction="sum")
    torch.testing.assert_close(ours.loss, theirs, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(ours.nll, plain, rtol=1e-5, atol=1e-4)
    assert ours.tokens == int((labels != PAD).sum())

    our_gradients = torch.autograd.grad(3 * ours.loss, (hidden, weight))
    their_gradients = torch.autograd.grad(3 * theirs, (hidden, weight))
    for our_gradient, their_gradient in zip(our_gradients, their_gradients, strict=True):
        torch.testing.assert_close(our_gradient, their_gradient, rtol=1e-4, atol=1e-5)


def test_padding_counts_for_nothing() -> None:
    hidden, weight = torch.randn(2, 4, 8, requires_grad=True), torch.randn(20, 8)
    labels = torch.tensor([[3, 4, 5, 6], [7, PAD, PAD, PAD]])
    loss = smoothed_cross_entropy(hidden, weight, labels, PAD)
    longer = F.pad(hidden, (0, 0, 0, 5), value=9.0)
    assert torch.equal(loss.loss, smoothed_cross_entropy(longer, weight, F.pad(labels, (0, 5)), PAD).loss)
    (gradient,) = torch.autograd.grad(loss.loss, hidden)
    assert (gradient[1, 1:] == 0).all()
    assert gradient[1, 0].any()


def test_without_gradients_none_are_computed() -> None:
    hidden, weight = torch.randn(2, 4, 8), torch.randn(20, 8)
    loss = smoothed_cross_entropy(hidden, weight, torch.ones(2, 4, dtype=torch.long), PAD)
    assert not loss.loss.requires_grad


def test_a_tied_matrix_gets_the_gradient_of_both_its_uses() -> None:
    weight = torch.randn(20, 8, requires_grad=True)
    labels = torch.tensor([[3, 4]])
    ours = smoothed_cross_entropy(weight[labels] * 2, weight, labels, PAD)
    theirs = F.cross_entropy((weight[labels] * 2 @ weight.T)[0], labels[0], label_smoothing=0.1, reduction="sum")
    (our_gradient,) = torch.autograd.grad(ours.loss, weight)
    (their_gradient,) = torch.autograd.grad(theirs, weight)
    torch.testing.assert_close(our_gradient, their_gradient)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("r_drop", [0.3, 5.0])
def test_r_drop_is_the_mean_loss_and_the_mean_of_both_divergences(smoothing: float, r_drop: float) -> None:
    one, other = (torch.randn(40, 9, 16, dtype=torch.float64, requires_grad=True) for _ in range(2))
    weight = torch.randn(50, 16, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(1, 50, (40, 9))
    labels[:, 7:] = PAD
    real = labels != PAD
    p, q = ((hidden @ weight.T).log_softmax(-1)[real] for hidden in (one, other))
    losses = [F.cross_entropy(each, labels[real], label_smoothing=smoothing, reduction="sum") for each in (p, q)]
    apart = F.kl_div(q, p, log_target=True, reduction="sum") + F.kl_div(p, q, log_target=True, reduction="sum")
    expected = (losses[0] + losses[1]) / 2 + r_drop * apart / 2
    ours = r_drop_loss(one, other, weight, labels, PAD, smoothing, r_drop)
    torch.testing.assert_close(ours.loss, expected)
    torch.testing.assert_close(ours.nll, F.nll_loss(p, labels[real], reduction="sum"))
    our_gradients = torch.autograd.grad(2 * ours.loss, (one, other, weight))
    their_gradients = torch.autograd.grad(2 * expected, (one, other, weight))
    for our_gradient, their_gradient in zip(our_gradients, their_gradients, strict=True):
        torch.testing.assert_close(our_gradient, their_gradient)


def test_passes_that_agree_cost_nothing_more() -> None:
    hidden, weight, labels = torch.randn(2, 3, 8), torch.randn(20, 8), torch.ones(2, 3, dtype=torch.long)
    plain = smoothed_cross_entropy(hidden, weight, labels, PAD, 0.1).loss
    torch.testing.assert_close(r_drop_loss(hidden, hidden, weight, labels, PAD, 0.1, 1.0).loss, plain)


@pytest.mark.parametrize("r_drop", [0.0, 0.7])
def test_a_bias_of_logits_is_learned_with_them(r_drop: float) -> None:
    projection = nn.Linear(8, 20)
    passes = [torch.randn(2, 4, 8, requires_grad=True) for _ in range(2)]
    labels = torch.tensor([[3, 4, 5, 6], [7, 8, PAD, PAD]])
    given = iter(passes)
    ours = regularised_loss(lambda: next(given), projection, labels, PAD, 0.1, r_drop)
    real = labels != PAD
    logits = [projection(each[real]) for each in passes]
    theirs = [F.cross_entropy(each, labels[real], label_smoothing=0.1, reduction="sum") for each in logits]
    expected = theirs[0]
    if r_drop:
        p, q = (each.log_softmax(-1) for each in logits)
        apart = F.kl_div(q, p, log_target=True, reduction="sum") + F.kl_div(p, q, log_target=True, reduction="sum")
        expected = (theirs[0] + theirs[1]) / 2 + r_drop * apart / 2
    torch.testing.assert_close(ours.loss, expected, rtol=1e-5, atol=1e-4)
    learned = (projection.weight, projection.bias, passes[0])
    for one, other in zip(torch.autograd.grad(ours.loss, learned), torch.autograd.grad(expected, learned), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("r_drop", [0.0, 0.7])
def test_a_row_that_counts_often_is_that_many_rows(r_drop: float, monkeypatch: pytest.MonkeyPatch) -> None:
    passes = [torch.randn(3, 5, 8, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    few, labels = torch.randn(6, 8, dtype=torch.float64, requires_grad=True), torch.randint(1, 4, (3, 5))
    counts = torch.tensor([1, 1, 1, 1, 3, 2])
    written_out = few.repeat_interleave(counts, dim=0)
    given = Candidates(torch.arange(6), counts.double(), labels.flatten())
    monkeypatch.setattr("transduce.training.loss.candidates", lambda labels_N, vocabulary, sampled: given)
    if r_drop:
        ours = r_drop_loss(*passes, few, labels, PAD, 0.1, r_drop, sampled=2)
        theirs = r_drop_loss(*passes, written_out, labels, PAD, 0.1, r_drop)
    else:
        ours = smoothed_cross_entropy(passes[0], few, labels, PAD, 0.1, sampled=2)
        theirs = smoothed_cross_entropy(passes[0], written_out, labels, PAD, 0.1)
    torch.testing.assert_close(ours.loss, theirs.loss)
    torch.testing.assert_close(ours.nll, theirs.nll)
    learned = (few, *passes) if r_drop else (few, passes[0])
    gradients = zip(torch.autograd.grad(ours.loss, learned), torch.autograd.grad(theirs.loss, learned), strict=True)
    for our_gradient, their_gradient in gradients:
        torch.testing.assert_close(our_gradient, their_gradient)


@pytest.mark.parametrize("r_drop", [0.0, 0.7])
def test_sampled_gradients_are_about_those_of_all(r_drop: float) -> None:
    torch.manual_seed(0)
    projection = nn.Linear(8, 400, bias=False)
    hidden = torch.randn(4, 10, 8, requires_grad=True)
    passes = [hidden, hidden + 0.3 * torch.randn(4, 10, 8)]
    labels = torch.randint(1, 40, (4, 10))

    def gradient(sampled: int) -> torch.Tensor:
        given = iter(passes)
        loss = regularised_loss(lambda: next(given), projection, labels, PAD, 0.1, r_drop, sampled).loss
        return torch.cat([each.flatten() for each in torch.autograd.grad(loss, (projection.weight, hidden))])

    exact = gradient(0)
    draws = [gradient(120) for _ in range(200)]
    one, mean = ((each - exact).norm() / exact.norm() for each in (draws[0], torch.stack(draws).mean(0)))
    assert one > 0.1  # a single draw is a guess
    assert mean < 0.02  # and right on average


def test_the_same_seed_draws_the_same_candidates_in_any_thread() -> None:
    labels = torch.tensor([5, 9, 5])

    def drawn(seed: int) -> list[int]:
        with randomness(seed):
            few = candidates(labels, 1000, 20)
        assert few is not None
        assert few.ids[few.labels].tolist() == labels.tolist()
        assert float(few.counts.sum()) == pytest.approx(1000)
        assert len(few.ids) == 22
        return few.ids.tolist()

    torch.manual_seed(1)
    first = drawn(7)
    torch.manual_seed(2)
    with ThreadPoolExecutor(2) as threads:
        one, other = threads.map(drawn, [7, 8])
    assert one == first
    assert other != first
    assert candidates(labels, 22, 20) is None
