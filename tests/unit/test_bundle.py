"""A model directory gives back what was put into it; a damaged one is refused, and says which file and why."""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
import zipfile
from collections.abc import Callable
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load, save

from transduce.bundle import Bundle, BundleConfig, builtin_models
from transduce.errors import BundleError
from transduce.model import Transformer, TransformerConfig
from transduce.text import Tokenizer, Vocabularies

LINES = [f"{subject} {verb} the {thing}." for subject in ("We", "They", "Kofi and Ama")
         for verb in ("painted", "understand", "repaired") for thing in ("house", "bicycles", "question")]  # fmt: skip
SCORES = {"dev": {"bleu": 31.4}, "step": 7}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.learn(LINES, 300)


def make_model(vocab_size: int, seed: int = 1, **overrides: Any) -> Transformer:
    torch.manual_seed(seed)
    shape = {"d_model": 16, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1, "heads": 2, **overrides}
    return Transformer(TransformerConfig.tiny(vocab_size, **shape)).eval()


def weights_of(model: Transformer) -> dict[str, torch.Tensor]:
    return {name: value.detach() for name, value in model.named_parameters()}


def write(path: Path, model: Transformer, tokenizer: Tokenizer, **settings: Any) -> Bundle:
    config = BundleConfig(architecture=asdict(model.config), **settings)
    return Bundle.write(path, config, weights_of(model), Vocabularies(tokenizer, tokenizer), SCORES, "# A card\n")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer) -> Path:
    """A directory to copy, not to change."""
    return write(tmp_path_factory.mktemp("models") / "sound", make_model(tokenizer.size), tokenizer).path


@pytest.fixture
def path(sound: Path, tmp_path: Path) -> Path:
    """A sound model directory to be damaged."""
    return Path(shutil.copytree(sound, tmp_path / "model"))


def use(path: Path) -> None:
    bundle = Bundle.open(path)
    bundle.vocabularies()
    bundle.model()


def refused(path: Path, match: str | None = None, file: str | None = None) -> BundleError:
    """The error that the directory gives; it names the file."""
    with pytest.raises(BundleError, match=match) as caught:
        use(path)
    assert str(path) in (caught.value.where or "")
    assert file is None or file in str(caught.value)
    return caught.value


def change(path: Path, **values: Any) -> None:
    """Change what config.json says; `...` takes an entry out."""
    config = json.loads((path / "config.json").read_text()) | values
    (path / "config.json").write_text(json.dumps({name: value for name, value in config.items() if value is not ...}))


def change_architecture(path: Path, **values: Any) -> None:
    change(path, architecture=json.loads((path / "config.json").read_text())["architecture"] | values)


def change_weights(path: Path, edit: Callable[[dict[str, torch.Tensor]], Any]) -> None:
    weights = load((path / "model.safetensors").read_bytes())
    edit(weights)
    (path / "model.safetensors").write_bytes(save(weights))


# What is put in comes out


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"tying": "none", "norm_position": "pre", "norm": "rms", "positions": "rotary", "activation": "swiglu"},
        {"tying": "target", "positions": "learned", "attention_bias": True, "key_value_heads": 1},
        {"positions": "relative", "encoder_layers": 2, "decoder_layers": 3},
    ],
)
def test_a_model_gives_the_same_logits_after_writing_and_opening(
    tmp_path: Path, tokenizer: Tokenizer, overrides: dict[str, Any]
) -> None:
    model = make_model(tokenizer.size, **overrides)
    write(tmp_path / "model", model, tokenizer)
    torch.manual_seed(99)  # what is drawn at opening must not matter
    opened = Bundle.open(tmp_path / "model").model()
    source, target = torch.randint(4, tokenizer.size, (3, 7)), torch.randint(4, tokenizer.size, (3, 5))
    assert not opened.training
    assert opened.config == model.config
    assert torch.equal(opened(source, target), model(source, target))


def test_the_tokenizer_is_the_same(path: Path, tokenizer: Tokenizer) -> None:
    opened = Bundle.open(path).vocabularies().source
    assert opened.model == tokenizer.model
    assert opened.encode("Kofi and Ama repaired bicycles. ɛ 👍") == tokenizer.encode(
        "Kofi and Ama repaired bicycles. ɛ 👍"
    )


def test_the_description_is_the_same(tmp_path: Path, tokenizer: Tokenizer) -> None:
    settings = {"source_language": "en", "target_language": "twi", "decoding": {"beam": 2, "alpha": 0.8}}
    config = write(tmp_path, make_model(tokenizer.size), tokenizer, **settings).config
    assert Bundle.open(tmp_path).config == config
    assert (config.source_language, config.target_language, config.decoding) == tuple(settings.values())


def test_scores_and_card_are_there_to_be_read(path: Path) -> None:
    assert json.loads((path / "scores.json").read_text()) == SCORES
    assert (path / "README.md").read_text() == "# A card\n"


def test_nothing_inside_is_a_pickle(path: Path) -> None:
    names = {file.name for file in path.iterdir()}
    assert names == {"config.json", "model.safetensors", "tokenizer.model", "scores.json", "README.md"}
    for file in path.iterdir():
        assert not zipfile.is_zipfile(file)  # what torch.save writes
        assert not file.read_bytes().startswith(b"\x80")  # how a pickle starts


def test_tied_weights_are_stored_once(path: Path, tokenizer: Tokenizer) -> None:
    tables = [name for name, value in load((path / "model.safetensors").read_bytes()).items() if 300 in value.shape]
    assert len(tables) == 1


# Damage to the description


def test_a_directory_without_a_description_is_no_model(path: Path) -> None:
    (path / "config.json").unlink()
    refused(path, r"there is no model here: config\.json is missing\. Give a directory that `transduce train`")


@pytest.mark.parametrize(
    "contents",
    [b"", b"hello", b"[1, 2]", b'"format"', b"null", b"3", b"{}", b'{"format": 1', b"\xff\xfe\x00", b"[" * 100_000,
     b'{"format":' * 100_000, b"[" * 100_000 + b"]" * 100_000],
    ids=["empty", "text", "list", "string", "null", "number", "nothing", "cut off", "not UTF-8", "deep list",
         "deep dict", "deep and closed"],
)  # fmt: skip
def test_what_is_not_a_description_is_refused(path: Path, contents: bytes) -> None:
    (path / "config.json").write_bytes(contents)
    error = refused(path, "not a model's description", "config.json")
    assert error.remedy


def test_a_newer_format_asks_for_an_update(path: Path) -> None:
    change(path, format=2)
    refused(path, r"format 2; this version of transduce reads up to 1\. Update transduce", "config.json")


@pytest.mark.parametrize("version", ["1", None, [1], 0, -1])
def test_a_format_that_never_was_is_refused(path: Path, version: Any) -> None:
    change(path, format=version)
    refused(path, file="config.json")


def test_an_unknown_entry_is_named(path: Path) -> None:
    change(path, soruce_language="en")
    refused(path, "'soruce_language' is not part of a model's description", "config.json")


def test_a_model_is_used_with_the_rules_that_it_was_trained_with(path: Path) -> None:
    plain = Bundle.open(path).vocabularies()
    assert plain.target.encode("ε") != plain.target.encode("ɛ")
    change(path, normalisation="nfc-1+target:ɔɛ")
    twi = Bundle.open(path).vocabularies()
    assert twi.target.encode("ε") == plain.target.encode("ɛ")
    assert twi.source.encode("ε") == plain.source.encode("ε")


def test_another_normalisation_is_refused(path: Path) -> None:
    change(path, normalisation="nfkc-9")
    refused(path, "trained with normalisation 'nfkc-9'", "config.json")


@pytest.mark.parametrize("architecture", [..., None, [], "tiny", {}], ids=str)
def test_a_description_without_architecture_is_refused(path: Path, architecture: Any) -> None:
    change(path, architecture=architecture)
    refused(path, file="config.json")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("d_modle", 16),
        ("d_model", "wide"),
        ("d_model", 15),
        ("dropout", "much"),
        ("pad_id", "first"),
        ("tying", ["all"]),
    ],
)
def test_an_architecture_that_cannot_be_is_refused_by_name(path: Path, name: str, value: Any) -> None:
    change_architecture(path, **{name: value})
    refused(path, name, "config.json")


@pytest.mark.parametrize("size", [2**20, 2**40, 2**70])
def test_an_architecture_of_absurd_size_is_refused_before_anything_is_allocated(path: Path, size: int) -> None:
    change_architecture(path, d_model=size)
    refused(path)


@pytest.mark.parametrize("decoding", [None, [], "fast"])
def test_decoding_defaults_must_be_options_with_values(path: Path, decoding: Any) -> None:
    change(path, decoding=decoding)
    refused(path, "decoding", "config.json")


# Damage to weights and tokenizer


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.model"])
def test_a_missing_file_is_named_at_opening(path: Path, name: str) -> None:
    (path / name).unlink()
    with pytest.raises(BundleError, match=rf"incomplete: {name} is missing"):
        Bundle.open(path)


@pytest.mark.parametrize("length", [0, 4, 8, 9, 100, 0.5, -1])
def test_truncated_weights_are_refused(path: Path, length: float) -> None:
    contents = (path / "model.safetensors").read_bytes()
    kept = int(length * len(contents)) if length == 0.5 else int(length)
    (path / "model.safetensors").write_bytes(contents[:kept])
    assert refused(path, "the weights are damaged", "model.safetensors").remedy


@pytest.mark.parametrize("size", [7, 8, 100, 50_000])
def test_random_bytes_are_not_weights(path: Path, size: int) -> None:
    (path / "model.safetensors").write_bytes(random.Random(size).randbytes(size))
    refused(path, "the weights are damaged", "model.safetensors")


@pytest.mark.parametrize("claimed", [0, 100_000_000, 2**31, 2**40, 2**63, 2**64 - 1])
def test_a_header_that_claims_a_wrong_size_is_refused(path: Path, claimed: int) -> None:
    contents = (path / "model.safetensors").read_bytes()
    (path / "model.safetensors").write_bytes(struct.pack("<Q", claimed) + contents[8:])
    refused(path, "the weights are damaged", "model.safetensors")


@pytest.mark.parametrize(
    "entry",
    [
        {"data_offsets": [0, 10**15]},
        {"data_offsets": [8, 0]},
        {"shape": [2**62, 2**62]},
        {"shape": [-1, 4]},
        {"dtype": "P"},
    ],
    ids=str,
)
def test_a_header_that_points_out_of_the_file_is_refused(path: Path, entry: dict[str, Any]) -> None:
    contents = (path / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", contents[:8])
    header = json.loads(contents[8 : 8 + length])
    header[next(name for name in header if name != "__metadata__")] |= entry
    changed = json.dumps(header).encode()
    (path / "model.safetensors").write_bytes(struct.pack("<Q", len(changed)) + changed + contents[8 + length :])
    refused(path, "the weights are damaged", "model.safetensors")


def test_a_tensor_of_another_shape_is_named_with_both_shapes(path: Path) -> None:
    name = sorted(load((path / "model.safetensors").read_bytes()))[0]
    shape = list(load((path / "model.safetensors").read_bytes())[name].shape)
    change_weights(path, lambda weights: weights.update({name: torch.zeros(3, 5)}))
    error = refused(path, "do not fit the architecture", "model.safetensors")
    assert f"{name} is [3, 5], should be {shape}" in str(error)


def test_every_missing_and_every_extra_tensor_is_named(path: Path) -> None:
    names = sorted(load((path / "model.safetensors").read_bytes()))
    change_weights(path, lambda weights: [weights.pop(names[0]), weights.pop(names[3])])
    change_weights(path, lambda weights: weights.update({"extra.one": torch.ones(2), "other": torch.ones(1)}))
    error = refused(path, "do not fit the architecture", "model.safetensors")
    assert f"missing: {names[0]}, {names[3]}; unknown: extra.one, other" in str(error)


@pytest.mark.parametrize("contents", [b"junk" * 50, b"\0" * 64, b""], ids=["text", "zeros", "empty"])
def test_a_damaged_tokenizer_is_refused(path: Path, contents: bytes) -> None:
    (path / "tokenizer.model").write_bytes(contents)
    refused(path, file="tokenizer.model")


def test_a_tokenizer_of_another_model_is_refused(path: Path) -> None:
    """With another vocabulary the weights give nonsense without an error."""
    (path / "tokenizer.model").write_bytes(Tokenizer.learn(LINES, 290).model)
    refused(path, "290.*300|300.*290", "tokenizer.model")


# Directories that are no model, or not yet


def test_a_directory_that_does_not_exist_is_answered_with_the_nearest_model(path: Path) -> None:
    (path.parent / "modle-notes").mkdir()
    valid = ", ".join(sorted([*builtin_models(), "model"]))
    refused(path.parent / "modle", rf"does not exist\. Did you mean 'model'\? Valid: {valid}\.")


def test_a_directory_with_nothing_near_it_is_said_not_to_exist(tmp_path: Path) -> None:
    refused(tmp_path / "nowhere", "The directory does not exist")
    refused(tmp_path / "nowhere" / "at all", "The directory does not exist")


def test_a_file_is_not_a_model(path: Path) -> None:
    refused(path / "model.safetensors", "there is no model here")


def test_a_training_that_has_not_finished_says_so(tmp_path: Path) -> None:
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    refused(tmp_path, "training has not finished: run the same train command again")


# Interrupted writing


@pytest.mark.parametrize("files", range(5))
def test_an_interrupted_write_leaves_the_old_model_whole(
    path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, files: int
) -> None:
    """The disk is full after some files. The old tokenizer beside new weights would translate to nonsense."""
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    calls = count()
    sync = os.fsync

    def full(descriptor: int) -> None:
        if next(calls) == files:
            raise OSError(28, "No space left on device")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    other = Tokenizer.learn([line.upper() for line in LINES], 300)
    with pytest.raises(OSError, match="No space left"):
        write(path, make_model(other.size, seed=2), other)
    assert {name: (path / name).read_bytes() for name in before} == before
    use(path)


def test_an_interrupted_first_write_leaves_no_model(
    tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace, calls = Path.replace, count()

    def killed(self: Path, target: Path) -> Path:
        if next(calls) == 4:
            raise KeyboardInterrupt
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "new", make_model(tokenizer.size), tokenizer)
    refused(tmp_path / "new", "there is no model here")


def test_a_model_can_be_written_over_an_older_one(path: Path) -> None:
    other = Tokenizer.learn([line.upper() for line in LINES], 290)
    model = make_model(other.size, seed=2, d_model=8)
    write(path, model, other)
    ids = torch.randint(4, 290, (2, 4))
    assert torch.equal(Bundle.open(path).model()(ids, ids), model(ids, ids))
    assert Bundle.open(path).vocabularies().source.model == other.model
