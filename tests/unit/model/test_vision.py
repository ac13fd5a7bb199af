"""Pictures as patches: cut as a plain loop cuts them, named by the class token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from transduce.errors import ConfigError, InputError
from transduce.model.vision import VisionConfig, VisionTransformer

SHAPE = {"height": 6, "width": 4, "channels": 3, "patch": 2, "labels": 5}


@pytest.fixture
def make() -> Callable[..., VisionTransformer]:
    def make(**overrides: Any) -> VisionTransformer:
        small = {"encoder_layers": 2, "d_model": 16, "d_ff": 32, "heads": 4}
        model = VisionTransformer(VisionConfig.tiny(3, **(small | SHAPE | overrides))).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.1)
        return model

    return make


@pytest.fixture
def pictures() -> torch.Tensor:
    return torch.randn(4, 3, 6, 4)


def close(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


def cut(picture: torch.Tensor, side: int) -> list[list[float]]:
    """Patches row by row; in each, channel by channel, row by row."""
    channels, height, width = picture.shape
    return [
        [
            float(picture[channel, top + row, left + column])
            for channel in range(channels)
            for row in range(side)
            for column in range(side)
        ]
        for top in range(0, height, side)
        for left in range(0, width, side)
    ]


@pytest.mark.parametrize("patch", [1, 2])
def test_patches_are_cut_as_a_plain_loop_cuts_them(
    make: Callable[..., VisionTransformer], pictures: torch.Tensor, patch: int
) -> None:
    model = make(patch=patch, positions="none")
    seen: list[torch.Tensor] = []
    model.patches.register_forward_hook(lambda _module, inputs, _output: seen.append(inputs[0]))
    model(pictures)
    assert seen[0].shape == (4, 24 // patch**2, 3 * patch**2)
    for picture, patches in zip(pictures, seen[0], strict=True):
        assert torch.equal(patches, torch.tensor(cut(picture, patch)))


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "none", "rotary"])
def test_the_answer_is_the_output_of_the_class_token_which_comes_first(
    make: Callable[..., VisionTransformer], pictures: torch.Tensor, positions: str
) -> None:
    model = make(positions=positions, max_length=7)
    patches = torch.tensor([cut(picture, 2) for picture in pictures]) @ model.patches.weight.T
    tokens = torch.cat((model.class_token.expand(4, 1, 16), patches), dim=1)
    if model.positions is not None:
        tokens = model.positions(tokens)
    logits = model(pictures)
    assert logits.shape == (4, 1, 5)
    close(logits[:, 0], model.encoder(tokens)[:, 0] @ model.projection.weight.T)


def test_order_of_patches_counts_only_with_positions(
    make: Callable[..., VisionTransformer], pictures: torch.Tensor
) -> None:
    moved = torch.cat((pictures[:, :, 2:], pictures[:, :, :2]), dim=2)  # the upper row of patches, now the lowest
    blind, sighted = make(positions="none"), make(positions="learned", max_length=7)
    close(blind(moved), blind(pictures))
    assert (sighted(moved) - sighted(pictures)).abs().max() > 1e-3


def test_a_picture_does_not_depend_on_its_batch(make: Callable[..., VisionTransformer], pictures: torch.Tensor) -> None:
    model = make()
    together = model(pictures)
    for row in range(4):
        close(model(pictures[row : row + 1]), together[row : row + 1])


def test_gradients_reach_every_parameter(make: Callable[..., VisionTransformer], pictures: torch.Tensor) -> None:
    model = make(positions="learned", max_length=7)
    model(pictures).sin().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.abs().sum() > 0 for parameter in model.parameters())


def test_attention_is_recorded_for_every_layer_and_head(
    make: Callable[..., VisionTransformer], pictures: torch.Tensor
) -> None:
    model = make()
    logits, record = model.with_attention(pictures)
    close(logits, model(pictures))
    assert [weights.shape for weights in record.encoder] == [(4, 4, 7, 7)] * 2


@pytest.mark.parametrize("shape", [(3, 6, 4), (1, 3, 4, 6), (1, 1, 6, 4), (1, 6, 4, 3)])
def test_pictures_of_another_shape_are_refused(make: Callable[..., VisionTransformer], shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"pictures have shape .*Give a batch \[pictures, 3, 6, 4\]"):
        make()(torch.zeros(shape))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"patch": 5}, r"pictures of 28×28 cannot be cut into patches of 5×5\. Use patch=4\."),
        ({"height": 9, "patch": 2}, r"pictures of 9×28 cannot be cut.*Use patch=1\."),
        ({"patch": 0}, "patch=0 cannot work"),
        ({"labels": 0}, "labels=0 cannot work"),
        ({"channels": "grey"}, "channels='grey' cannot work"),
        ({"positions": "learned", "max_length": 16}, r"max_length=16 is less .* Use max_length=17\."),
    ],
)
def test_what_cannot_work_is_named_with_its_remedy(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        VisionConfig.tiny(3, **overrides)


def test_one_more_place_than_patches_is_enough(make: Callable[..., VisionTransformer]) -> None:
    assert make(positions="learned", max_length=7).config.grid == (3, 2)
