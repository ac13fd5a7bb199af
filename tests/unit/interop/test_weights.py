"""Other people's weights: what is wrong is said by name, before anything is allocated or run."""

from __future__ import annotations

import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from transduce.errors import BundleError
from transduce.interop.huggingface import load_huggingface
from transduce.interop.weights import Weights, read_json

TENSORS = {"first": torch.arange(6.0).view(2, 3), "second": torch.ones(4, dtype=torch.float16)}


def one_file(directory: Path, tensors: dict[str, Tensor]) -> Path:
    save_file(tensors, directory / "model.safetensors")
    return directory


def shards(directory: Path, places: dict[str, Any]) -> Path:
    for number, (name, tensor) in enumerate(TENSORS.items()):
        save_file({name: tensor}, directory / f"model-{number}.safetensors")
    (directory / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    return directory


SHARDS = {"first": "model-0.safetensors", "second": "model-1.safetensors"}


def test_a_tensor_is_read_as_float32(tmp_path: Path) -> None:
    weights = Weights.open(one_file(tmp_path, TENSORS))
    assert {name: header.shape for name, header in weights.items()} == {"first": (2, 3), "second": (4,)}
    for name, tensor in TENSORS.items():
        assert weights.tensor(name).dtype == torch.float32
        assert weights.tensor(name).tolist() == tensor.tolist()


def test_several_files_are_one_model(tmp_path: Path) -> None:
    weights = Weights.open(shards(tmp_path, SHARDS))
    assert {name: weights.tensor(name).tolist() for name in weights} == {k: v.tolist() for k, v in TENSORS.items()}


@pytest.mark.parametrize(
    "name",
    ["../model-1.safetensors", "/etc/passwd", "..", "a/b.safetensors", "C:model-1.safetensors", "model-1.bin",
     "sub\\model-1.safetensors", ""],
)  # fmt: skip
def test_an_index_that_reaches_for_other_files_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    save_file(TENSORS, tmp_path / "model-1.safetensors")
    with pytest.raises(BundleError, match="no file beside it"):
        Weights.open(shards(tmp_path / "model", SHARDS | {"second": name}))


@pytest.mark.parametrize("places", [None, [], {"first": 1}, {"first": None}])
def test_an_index_that_is_none_is_refused(places: Any, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="weight_map"):
        Weights.open(shards(tmp_path, places))


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"model-7\.safetensors is missing"):
        Weights.open(shards(tmp_path, SHARDS | {"second": "model-7.safetensors"}))


def test_a_tensor_in_two_parts_is_named(tmp_path: Path) -> None:
    shards(tmp_path, SHARDS)
    save_file(TENSORS, tmp_path / "model-1.safetensors")
    with pytest.raises(BundleError, match=r"'first' stands in model-0\.safetensors too"):
        Weights.open(tmp_path)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_what_is_no_number_is_named(value: float, kind: torch.dtype, tmp_path: Path) -> None:
    weights = Weights.open(one_file(tmp_path, {"good": torch.ones(2), "bad": torch.tensor([1.0, value]).to(kind)}))
    assert weights.tensor("good").tolist() == [1, 1]
    with pytest.raises(BundleError, match="'bad' holds NaN or infinity"):
        weights.tensor("bad")


@pytest.mark.parametrize("kind", [torch.int8, torch.int64, torch.bool, torch.float8_e4m3fn])
def test_weights_of_other_types_are_named(kind: torch.dtype, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="'odd' is of type"):
        Weights.open(one_file(tmp_path, {"odd": torch.zeros(3).to(kind)})).tensor("odd")


def test_no_weights_are_said(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"model\.safetensors is missing"):
        Weights.open(tmp_path)


def test_json_that_is_nested_without_end_is_refused(tmp_path: Path) -> None:
    for contents in ("[" * 10**6, '{"a":' * 10**6, "[1]", "not json", "\x00", '{"a": 1'):
        (tmp_path / "config.json").write_text(contents)
        with pytest.raises(BundleError, match=r"config\.json: it is"):
            read_json(tmp_path / "config.json")


# Pickles


def pickled(directory: Path, contents: Any) -> Path:
    torch.save(contents, directory / "pytorch_model.bin")
    return directory


def test_pickles_are_read_only_if_that_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="a pickle can hold a program"):
        Weights.open(pickled(tmp_path, TENSORS))
    weights = Weights.open(tmp_path, allow_pickle=True)
    assert {name: weights.tensor(name).tolist() for name in weights} == {k: v.tolist() for k, v in TENSORS.items()}


class Program:
    """What runs when it is unpickled."""

    def __init__(self, call: Callable[..., Any], *arguments: Any) -> None:
        self.call, self.arguments = call, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self.call, self.arguments


def test_a_program_is_not_run(tmp_path: Path) -> None:
    made = tmp_path / "made"
    with pytest.raises(BundleError, match=r"asks for (io|_io|builtins|__builtin__)\.open"):
        Weights.open(pickled(tmp_path, TENSORS | {"third": Program(open, str(made), "w")}), allow_pickle=True)
    assert not made.exists()


def test_room_is_not_asked_for(tmp_path: Path) -> None:
    """A byte array of any size can be made by a name that PyTorch's own restricted loader allows."""
    with pytest.raises(BundleError, match="bytearray"):
        Weights.open(pickled(tmp_path, TENSORS | {"third": Program(bytearray, 2**50)}), allow_pickle=True)


def test_a_tensor_that_says_it_is_larger_than_its_file_is_refused(tmp_path: Path) -> None:
    wide = torch.ones(1).as_strided((2**20, 2**20), (0, 0))
    resource = pytest.importorskip("resource")  # which Windows has not
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(BundleError, match="does not fit into the file"):
        Weights.open(pickled(tmp_path, {"wide": wide}), allow_pickle=True)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000, "kilobytes"


def test_an_archive_that_grows_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "pytorch_model.bin", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({}, protocol=2))
        archive.writestr("archive/data/0", bytes(10**7))
    with pytest.raises(BundleError, match="compressed"):
        Weights.open(tmp_path, allow_pickle=True)


@pytest.mark.parametrize("contents", [{"a": 1}, [torch.ones(1)], {1: torch.ones(1)}, 5])
def test_what_is_no_state_is_refused(contents: Any, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="is not a"):
        Weights.open(pickled(tmp_path, contents), allow_pickle=True)


# A description and weights that do not belong together

MARIAN = {
    "architectures": ["MarianMTModel"], "model_type": "marian", "vocab_size": 20, "d_model": 8, "encoder_layers": 1,
    "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 12,
    "decoder_ffn_dim": 12, "pad_token_id": 19, "eos_token_id": 0, "decoder_start_token_id": 19,
}  # fmt: skip


def marian(directory: Path, settings: dict[str, Any], change: dict[str, Tensor | None]) -> Path:
    from transduce.interop.huggingface_export import export_huggingface
    from transduce.model import Transformer, TransformerConfig

    config = TransformerConfig.tiny(20, d_model=8, d_ff=12, heads=2, encoder_layers=1, decoder_layers=1)
    export_huggingface(Transformer(config), directory / "model")
    from safetensors.torch import load_file

    state = load_file(directory / "model" / "model.safetensors") | change
    one_file(directory / "model", {name: tensor for name, tensor in state.items() if tensor is not None})
    (directory / "model" / "config.json").write_text(json.dumps(MARIAN | settings))
    return directory / "model"


FC1 = "model.encoder.layers.0.fc1.weight"


@pytest.mark.parametrize(
    ("settings", "change", "message"),
    [
        ({}, {FC1: None, "model.decoder.layers.0.fc2.bias": None}, f"missing: {FC1}, model.decoder.layers.0.fc2.bias"),
        ({}, {"model.extra": torch.ones(1), "odd": torch.ones(1)}, "of no use here: model.extra, odd"),
        ({}, {FC1: torch.ones(12, 7)}, f"'{FC1}' of shape [12, 7] cannot be"),
        ({"d_model": 16}, {}, "of shape [20, 16], as its config.json describes it"),
        ({"vocab_size": 10**9}, {}, "of shape [1000000000, 8]"),
        ({"encoder_layers": 10**9}, {}, "it describes 1000000000 layers"),
        ({"encoder_layers": 0}, {}, "of no use here: model.encoder.layers.0.fc1.bias"),
        ({"d_model": 2**31 - 1}, {}, "not divisible by heads"),
        ({"d_model": "8"}, {}, "d_model is '8'"),
        ({"d_model": {"a": []}}, {}, "d_model is a dict"),
        ({"activation_function": "tanh"}, {}, "activation_function='tanh' has no counterpart here"),
        ({"dropout": 3}, {}, "dropout is 3"),
        ({"pad_token_id": 99}, {}, "pad_id=99 lies outside"),
        ({"tie_word_embeddings": False}, {}, "missing: lm_head.weight"),
        ({"architectures": ["MarianMTModle"]}, {}, "Did you mean 'MarianMTModel'?"),
        ({"architectures": ["BartForCausalLM"]}, {}, "'BartForCausalLM' cannot be imported"),
        ({"architectures": None, "model_type": "llama"}, {}, "model_type='llama' has no counterpart"),
        (
            {},
            {"model.encoder.embed_positions.weight": torch.ones(9, 8)},
            "'model.encoder.embed_positions.weight' is not the sinusoids of its kind",
        ),
    ],
)
def test_what_does_not_belong_together_is_said(
    settings: dict[str, Any], change: dict[str, Tensor | None], message: str, tmp_path: Path
) -> None:
    with pytest.raises(BundleError) as caught:
        load_huggingface(marian(tmp_path, settings, change))
    assert message in str(caught.value)


def test_as_it_is_it_is_read(tmp_path: Path) -> None:
    model = load_huggingface(marian(tmp_path, {}, {}))
    assert sum(parameter.numel() for parameter in model.parameters()) > 1000
