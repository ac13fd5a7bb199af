"""The same weights in torch.nn.Transformer and its encoder give the same outputs, gradients and losses on the way."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.model import DecoderLayer, EncoderLayer, MultiHeadAttention, Transformer, TransformerConfig
from transduce.model.decoder_only import LanguageModel
from transduce.model.encoder_only import EncoderConfig, EncoderOnly
from transduce.model.layers import Residual
from transduce.model.positions import sinusoidal_positions
from transduce.model.workers import Workers
from transduce.training.events import Event, Stepped
from transduce.training.loop import Trainer
from transduce.training.loss import LossSum, smoothed_cross_entropy
from transduce.training.recipe import Budget, TrainingRecipe
from transduce.training.task import Validation

D, HEADS, FF, LAYERS, VOCABULARY = 32, 4, 48, 3, 23
Module = TypeVar("Module", bound=nn.Module)


def make_ours(norm_position: str, activation: str) -> Transformer:
    config = TransformerConfig.base(
        VOCABULARY, d_model=D, heads=HEADS, d_ff=FF, encoder_layers=LAYERS, decoder_layers=LAYERS,
        attention_bias=True, norm_position=norm_position, activation=activation, dropout=0.0,
    )  # fmt: skip
    return drawn(Transformer(config))


def drawn(model: Module) -> Module:
    for parameter in model.parameters():  # so that no bias is zero and no norm is one
        nn.init.normal_(parameter, std=0.3) if parameter.dim() > 1 else nn.init.normal_(parameter, mean=0.5, std=0.3)
    return model


def make_theirs(ours: Transformer, norm_position: str, activation: str) -> nn.Transformer:
    """Torch's layers with our weights; post-norm without the final norms that torch adds and the paper does not."""
    pre = norm_position == "pre"
    theirs = nn.Transformer(D, HEADS, LAYERS, LAYERS, FF, 0.0, activation, batch_first=True, norm_first=pre)
    if pre:
        copy(ours.encoder.norm, theirs.encoder.norm)
        copy(ours.decoder.norm, theirs.decoder.norm)
    else:
        theirs.encoder.norm = theirs.decoder.norm = None
    copy_encoder_layers(ours.encoder.layers, theirs.encoder)
    for our_layer, layer in zip(ours.decoder.layers, theirs.decoder.layers, strict=True):
        assert isinstance(our_layer, DecoderLayer)
        copy_attention(our_layer.attention, layer.self_attn)
        copy_attention(our_layer.cross_attention, layer.multihead_attn)
        copy_feedforward(our_layer, layer)
        copy_norms(
            [our_layer.attention_residual, our_layer.cross_attention_residual, our_layer.feedforward_residual],
            [layer.norm1, layer.norm2, layer.norm3],
        )
    return theirs


def make_their_encoder(
    layers: nn.ModuleList, norm: nn.Module, norm_position: str, activation: str
) -> nn.TransformerEncoder:
    """Torch's encoder with the weights of ours, which is all that a network with one stack is made of."""
    pre = norm_position == "pre"
    layer = nn.TransformerEncoderLayer(D, HEADS, FF, 0.0, activation, batch_first=True, norm_first=pre)
    theirs = nn.TransformerEncoder(layer, LAYERS, nn.LayerNorm(D) if pre else None)
    if theirs.norm is not None:
        copy(norm, theirs.norm)
    copy_encoder_layers(layers, theirs)
    return theirs


def copy_encoder_layers(ours: nn.ModuleList, theirs: nn.TransformerEncoder) -> None:
    for our_layer, layer in zip(ours, theirs.layers, strict=True):
        assert isinstance(our_layer, EncoderLayer)
        copy_attention(our_layer.attention, layer.self_attn)
        copy_feedforward(our_layer, layer)
        copy_norms([our_layer.attention_residual, our_layer.feedforward_residual], [layer.norm1, layer.norm2])


def copy(ours: nn.Module, theirs: nn.Module) -> None:
    theirs.load_state_dict(ours.state_dict())


def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    theirs.in_proj_weight.data.copy_(ours.qkv.weight)
    theirs.in_proj_bias.data.copy_(ours.qkv.bias)
    copy(ours.output, theirs.out_proj)


def copy_feedforward(ours: EncoderLayer | DecoderLayer, theirs: nn.Module) -> None:
    copy(ours.feedforward.inner, theirs.linear1)
    copy(ours.feedforward.outer, theirs.linear2)


def copy_norms(ours: list[Residual], theirs: list[nn.LayerNorm]) -> None:
    for residual, norm in zip(ours, theirs, strict=True):
        copy(residual.norm, norm)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("norm_position", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_outputs_and_gradients_equal_torch_nn_transformer(norm_position: str, activation: str) -> None:
    ours = make_ours(norm_position, activation)
    theirs = make_theirs(ours, norm_position, activation)
    source = torch.randint(3, VOCABULARY, (4, 9))
    source[1, 6:], source[3, 2:] = 0, 0
    target = torch.randint(3, VOCABULARY, (4, 7))

    our_output = ours.hidden(source, target)
    # torch's attention stack, fed by our embeddings: torch leaves embeddings to the user.
    embedded_source, embedded_target = ours.source_embedding(source), ours.target_embedding(target)
    their_output = theirs(
        embedded_source,
        embedded_target,
        tgt_mask=torch.ones(7, 7, dtype=torch.bool).triu(1),
        src_key_padding_mask=source == 0,
        memory_key_padding_mask=source == 0,
        tgt_is_causal=True,
    )
    torch.testing.assert_close(our_output, their_output, atol=1e-5, rtol=1e-4)

    probe = torch.randn_like(our_output)
    our_embedding = ours.source_embedding.tokens.weight
    (our_gradient,) = torch.autograd.grad(our_output, our_embedding, probe, retain_graph=True)
    (their_gradient,) = torch.autograd.grad(their_output, our_embedding, probe, retain_graph=True)
    torch.testing.assert_close(our_gradient, their_gradient, atol=1e-4, rtol=1e-3)

    (our_output * probe).sum().backward()
    (their_output * probe).sum().backward()
    for our_layer, layer in zip(ours.decoder.layers, theirs.decoder.layers, strict=True):
        pairs = [
            (our_layer.attention.qkv.weight, layer.self_attn.in_proj_weight),
            (our_layer.attention.qkv.bias, layer.self_attn.in_proj_bias),
            (our_layer.cross_attention.qkv.weight, layer.multihead_attn.in_proj_weight),
            (our_layer.cross_attention.output.weight, layer.multihead_attn.out_proj.weight),
            (our_layer.feedforward.inner.weight, layer.linear1.weight),
            (our_layer.feedforward.outer.bias, layer.linear2.bias),
            (our_layer.cross_attention_residual.norm.weight, layer.norm2.weight),
        ]
        for our_parameter, their_parameter in pairs:
            torch.testing.assert_close(our_parameter.grad, their_parameter.grad, atol=1e-4, rtol=1e-3)
    for our_layer, layer in zip(ours.encoder.layers, theirs.encoder.layers, strict=True):
        torch.testing.assert_close(
            our_layer.attention.qkv.weight.grad, layer.self_attn.in_proj_weight.grad, atol=1e-4, rtol=1e-3
        )


def gradients_agree(
    ours: Tensor, theirs: Tensor, our_layers: nn.ModuleList, their_layers: nn.ModuleList, embedding: nn.Parameter
) -> None:
    """Of the table that both are fed from, and of every weight of every layer."""
    probe = torch.randn_like(ours)
    ours_of = [embedding]
    theirs_of = [embedding]
    for our_layer, layer in zip(our_layers, their_layers, strict=True):
        ours_of += [
            our_layer.attention.qkv.weight, our_layer.attention.qkv.bias, our_layer.attention.output.weight,
            our_layer.feedforward.inner.weight, our_layer.feedforward.outer.bias,
            our_layer.attention_residual.norm.weight, our_layer.feedforward_residual.norm.bias,
        ]  # fmt: skip
        theirs_of += [
            layer.self_attn.in_proj_weight, layer.self_attn.in_proj_bias, layer.self_attn.out_proj.weight,
            layer.linear1.weight, layer.linear2.bias, layer.norm1.weight, layer.norm2.bias,
        ]  # fmt: skip
    our_gradients = torch.autograd.grad(ours, ours_of, probe, retain_graph=True)
    their_gradients = torch.autograd.grad(theirs, theirs_of, probe)
    for our_gradient, their_gradient in zip(our_gradients, their_gradients, strict=True):
        torch.testing.assert_close(our_gradient, their_gradient, atol=1e-4, rtol=1e-3)


ONE_STACK = {"d_model": D, "heads": HEADS, "d_ff": FF, "attention_bias": True, "dropout": 0.0}


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("norm_position", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_the_encoder_alone_equals_torch_nn_transformer_encoder(norm_position: str, activation: str) -> None:
    kind = {"norm_position": norm_position, "activation": activation, "encoder_layers": LAYERS}
    ours = drawn(EncoderOnly(EncoderConfig.base(VOCABULARY, head="token", labels=5, **ONE_STACK, **kind)))
    theirs = make_their_encoder(ours.encoder.layers, ours.encoder.norm, norm_position, activation)
    ids = torch.randint(3, VOCABULARY, (4, 9))
    ids[1, 6:], ids[3, 2:] = 0, 0
    our_output = ours.hidden(ids)
    their_output = theirs(ours.embedding(ids), src_key_padding_mask=ids == 0)
    real = ids != 0
    torch.testing.assert_close(our_output[real], their_output[real], atol=1e-5, rtol=1e-4)
    table = ours.embedding.tokens.weight
    gradients_agree(our_output[real], their_output[real], ours.encoder.layers, theirs.layers, table)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("norm_position", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_the_decoder_alone_equals_torch_nn_transformer_encoder_with_a_causal_mask(
    norm_position: str, activation: str
) -> None:
    kind = {"norm_position": norm_position, "activation": activation, "decoder_layers": LAYERS}
    ours = drawn(LanguageModel(TransformerConfig.base(VOCABULARY, **ONE_STACK, **kind)))
    theirs = make_their_encoder(ours.layers, ours.norm, norm_position, activation)
    ids = torch.randint(3, VOCABULARY, (4, 9))
    our_output = ours.hidden(ids)
    their_output = theirs(ours.embedding(ids), mask=torch.ones(9, 9, dtype=torch.bool).triu(1), is_causal=True)
    torch.testing.assert_close(our_output, their_output, atol=1e-5, rtol=1e-4)
    gradients_agree(our_output, their_output, ours.layers, theirs.layers, ours.embedding.tokens.weight)


class Reversing:
    """Learns to write sequences backwards, 12 of them a batch; the same batches each time."""

    def __init__(self) -> None:
        config = TransformerConfig.base(
            VOCABULARY, d_model=D, heads=HEADS, d_ff=FF, encoder_layers=LAYERS, decoder_layers=LAYERS,
            attention_bias=True, dropout=0.0,
        )  # fmt: skip
        self.module = Transformer(config)

    def batches(self, epoch: int, start: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        generator = torch.Generator().manual_seed(11)
        for _ in range(50):
            source = torch.randint(3, VOCABULARY, (12, 8), generator=generator)
            source[:4, 5:] = 0
            labels = source.flip(1)
            labels[:4] = labels[:4].roll(-3, 1)  # padding at the end again
            yield source, torch.cat((torch.ones(12, 1, dtype=torch.long), labels[:, :-1]), 1), labels

    def loss(self, batch: tuple[Tensor, Tensor, Tensor], r_drop: float = 0.0) -> LossSum:
        source, target, labels = batch
        return smoothed_cross_entropy(self.module.hidden(source, target), self.module.projection.weight, labels, 0)

    def size(self, batch: tuple[Tensor, Tensor, Tensor]) -> int:
        return batch[0].numel()

    def split(self, batch: tuple[Tensor, Tensor, Tensor], parts: int) -> list[tuple[Tensor, ...]]:
        return list(zip(*(side.tensor_split(parts) for side in batch), strict=True))

    def rate(self, step: int) -> float:
        return 1e-4 * step

    def validate(self) -> Validation:
        return Validation({}, 0.0, [])


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_fifty_steps_of_our_loop_have_the_losses_of_a_plain_one(tmp_path: Path) -> None:
    """Two workers, chunked loss, fused Adam, clipping: against nn.Transformer as one would write it."""
    task = Reversing()
    theirs = make_theirs(task.module, "post", "relu")
    embedding = nn.Embedding.from_pretrained(task.module.source_embedding.tokens.weight.detach().clone(), freeze=False)
    positions = sinusoidal_positions(8, D)
    parameters = [*theirs.parameters(), embedding.weight]
    adam = torch.optim.Adam(parameters, betas=(0.9, 0.98), eps=1e-9)
    expected = []
    for step, (source, target, labels) in enumerate(task.batches(0, 0), start=1):
        hidden = theirs(
            embedding(source) * math.sqrt(D) + positions,
            embedding(target) * math.sqrt(D) + positions,
            tgt_mask=torch.ones(8, 8, dtype=torch.bool).triu(1),
            src_key_padding_mask=source == 0,
            memory_key_padding_mask=source == 0,
        )
        logits = hidden @ embedding.weight.T
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=0, label_smoothing=0.1)
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 0.5)
        adam.param_groups[0]["lr"] = task.rate(step)
        adam.step()
        expected.append(loss.item())

    events: list[Event] = []
    recipe = TrainingRecipe(clip=0.5, validate_every=1000)
    with Workers(2) as workers:
        Trainer(task, recipe, Budget(steps=50), tmp_path, events.append, workers=workers).run()
    losses = [event.loss for event in events if isinstance(event, Stepped)]
    assert losses == pytest.approx(expected, abs=1e-4)
    assert expected[-1] < expected[0] - 0.3, "nothing was learned that could have gone another way"
