"""Files that are damaged, cut short, foreign or made to do harm: each is refused in words, or read as what it says.

Every file of every door is changed in hundreds of ways; whatever comes of it is a model or one of our own errors.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from transduce.bundle import Bundle
from transduce.errors import BundleError, TransduceError
from transduce.interop.fairseq import import_fairseq
from transduce.interop.imported import import_huggingface

DEEP = "[" * 1_000_000
TINY = {
    "d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8, "max_position_embeddings": 16,
}  # fmt: skip


class Door(NamedTuple):
    """A directory that can be imported, and how."""

    directory: Path
    enter: Callable[[Path, Path], Any]
    files: list[str]


def through_huggingface(directory: Path, output: Path) -> Any:
    return import_huggingface(directory, output, allow_pickle=True)


def through_fairseq(directory: Path, output: Path) -> Any:
    return import_fairseq(directory, output, allow_pickle=True)


def opened(directory: Path, output: Path) -> Any:
    """One that was imported already, as it lies on the disk."""
    bundle = Bundle.open(directory)
    return bundle.vocabularies(), bundle.model(), output


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory, save_tokenizer: Callable[[str, Path], Any]) -> dict[str, Door]:
    import transformers

    folder = tmp_path_factory.mktemp("doors")
    torch.manual_seed(0)

    def made(name: str, tokenizer: str) -> tuple[Path, Any]:
        directory = folder / name
        directory.mkdir()
        return directory, save_tokenizer(tokenizer, directory)

    marian, tokens = made("marian", "small_marian")
    size, special = len(tokens), {"pad_token_id": tokens.pad_token_id, "eos_token_id": tokens.eos_token_id}
    config = transformers.MarianConfig(
        vocab_size=size, decoder_vocab_size=size, decoder_start_token_id=tokens.pad_token_id, **special, **TINY
    )
    model = transformers.MarianMTModel(config)
    model.save_pretrained(marian)
    pickled = folder / "pickled"
    shutil.copytree(marian, pickled)
    (pickled / "model.safetensors").unlink()
    torch.save({name: value.clone() for name, value in model.state_dict().items()}, pickled / "pytorch_model.bin")
    old = folder / "old"
    shutil.copytree(pickled, old)
    state = torch.load(pickled / "pytorch_model.bin", weights_only=True)
    torch.save(state, old / "pytorch_model.bin", _use_new_zipfile_serialization=False)
    bart, tokens = made("bart", "bart")
    config = transformers.BartConfig(vocab_size=len(tokens), forced_bos_token_id=0, **TINY)
    transformers.BartForConditionalGeneration(config).save_pretrained(bart)
    import_huggingface(marian, folder / "imported")
    fairseq = folder / "fairseq"
    fairseq.mkdir()
    _write_fairseq(fairseq, model)
    settings_files = ["config.json", "generation_config.json", "tokenizer_config.json"]
    return {
        "marian": Door(marian, through_huggingface, ["model.safetensors", "vocab.json", "source.spm", *settings_files]),
        "pickled": Door(pickled, through_huggingface, ["pytorch_model.bin"]),
        "bart": Door(bart, through_huggingface, ["tokenizer.json", "tokenizer_config.json", "config.json"]),
        "fairseq": Door(fairseq, through_fairseq, ["model.pt", "dict.en.txt", "dict.fr.txt", "bpecodes"]),
        "old": Door(old, through_huggingface, ["pytorch_model.bin"]),
        "imported": Door(folder / "imported", opened, ["tokenizer.model", "config.json", "model.safetensors"]),
    }


def _write_fairseq(folder: Path, model: Any) -> None:
    words = [f"w{number}" for number in range(model.config.vocab_size - 4)]
    for language in ("en", "fr"):
        (folder / f"dict.{language}.txt").write_text("".join(f"{word} 1\n" for word in words))
    (folder / "bpecodes").write_text("#version: 0.2\nw 1\nw1 2</w>\n")
    names = {"embed_dim": 8, "ffn_embed_dim": 8, "layers": 1, "attention_heads": 2}
    sides = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in names.items()}
    args = argparse.Namespace(**sides, source_lang="en", target_lang="fr", share_all_embeddings=True, dropout=0.1)
    state = {
        name.removeprefix("model."): value.clone()
        for name, value in model.state_dict().items()
        if "embed_positions" not in name and name not in ("final_logits_bias", "model.shared.weight", "lm_head.weight")
    }
    state["decoder.output_projection.weight"] = state["decoder.embed_tokens.weight"].clone()
    torch.save({"args": args, "model": state}, folder / "model.pt")


def attempt(door: Door, name: str, contents: bytes, folder: Path) -> TransduceError | None:
    """Try a door with one file changed; anything but a model or an error of ours fails the test."""
    path, output = door.directory / name, folder / "output"
    shutil.rmtree(output, ignore_errors=True)
    original = path.read_bytes()
    path.write_bytes(contents)
    try:
        door.enter(door.directory, output)
    except TransduceError as error:
        assert not output.exists()
        return error
    finally:
        path.write_bytes(original)
    return None


def test_unchanged_they_are_imported(doors: dict[str, Door], tmp_path: Path) -> None:
    for name, door in doors.items():
        first = door.files[0]
        assert attempt(door, first, (door.directory / first).read_bytes(), tmp_path) is None, name


Change = tuple[str, float, bytes]
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["set", "flip", "cut", "insert", "delete", "number"]),
        st.floats(0, 1, exclude_max=True),
        st.binary(min_size=1, max_size=12),
    ),
    min_size=1,
    max_size=4,
)


def changed(contents: bytes, changes: list[Change]) -> bytes:
    found = bytearray(contents)
    for kind, where, new in changes:
        place = int(where * len(found))
        if kind == "set":
            found[place : place + len(new)] = new
        elif kind == "flip" and found:
            found[min(place, len(found) - 1)] ^= 1 << (new[0] % 8)
        elif kind == "cut":
            del found[place:]
        elif kind == "insert":
            found[place:place] = new
        elif kind == "delete":
            del found[place : place + 16 * new[0] + 1]
        elif kind == "number":  # the next number of a text becomes another
            digits = next((at for at in range(place, len(found)) if chr(found[at]).isdigit()), None)
            if digits is not None:
                found[digits : digits + 1] = random.Random(new).choice([b"-1", b"99999999999999999999", b"0", b"1.5"])
    return bytes(found)


@pytest.mark.parametrize("name", ["marian", "pickled", "old", "bart", "fairseq", "imported"])
def test_any_change_gives_a_model_or_an_error_of_ours(name: str, doors: dict[str, Door], tmp_path: Path) -> None:
    door = doors[name]
    tried: list[TransduceError | None] = []

    @settings(max_examples=100, suppress_health_check=list(HealthCheck))
    @given(file=st.sampled_from(door.files), changes=CHANGES)
    def try_it(file: str, changes: list[Change]) -> None:
        original = (door.directory / file).read_bytes()
        tried.append(attempt(door, file, changed(original, changes), tmp_path))

    try_it()
    assert len(tried) >= 100  # times six doors
    refused = [str(error) for error in tried if error is not None]
    assert len(refused) > 30  # changes that cannot be overlooked are not
    assert all(len(message) < 2000 and "Traceback" not in message for message in refused)


@pytest.mark.parametrize(
    "contents", [b"", b"\0" * 100, b"<html>Not found</html>", b"\x89PNG\r\n\x1a\n", b"null", b"[]"]
)
def test_foreign_files_are_refused(contents: bytes, doors: dict[str, Door], tmp_path: Path) -> None:
    for name, file in [
        ("marian", "config.json"), ("marian", "model.safetensors"), ("marian", "vocab.json"), ("marian", "source.spm"),
        ("pickled", "pytorch_model.bin"), ("bart", "tokenizer.json"), ("fairseq", "model.pt"),
        ("imported", "tokenizer.model"),
    ]:  # fmt: skip
        error = attempt(doors[name], file, contents, tmp_path)
        assert error is not None, (name, file)
        assert file in str(error)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("marian", "config.json"), ("marian", "vocab.json"), ("marian", "tokenizer_config.json"),
        ("bart", "tokenizer.json"), ("imported", "tokenizer.model"), ("imported", "config.json"),
    ],
)  # fmt: skip
def test_json_that_is_nested_without_end_is_refused(
    name: str, file: str, doors: dict[str, Door], tmp_path: Path
) -> None:
    for opening in (DEEP, '{"a":' * 1_000_000):
        assert attempt(doors[name], file, opening.encode(), tmp_path) is not None


def safetensors(header: dict[str, Any], data: bytes, length: int | None = None) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


@pytest.mark.parametrize(
    "contents",
    [
        safetensors({"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}, b""),
        safetensors({"a": {"dtype": "F32", "shape": [2**62, 4], "data_offsets": [0, 4]}}, b"\0" * 4),
        safetensors({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, b"\0" * 4, length=2**60),
        safetensors({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}, b"\0" * 4),
    ],
)
def test_a_header_that_lies_is_refused(contents: bytes, doors: dict[str, Door], tmp_path: Path) -> None:
    for name in ("marian", "imported"):
        assert isinstance(attempt(doors[name], "model.safetensors", contents, tmp_path), BundleError)


def test_weights_that_are_no_numbers_are_named(doors: dict[str, Door], tmp_path: Path) -> None:
    from safetensors.torch import load, save

    door = doors["marian"]
    state = load((door.directory / "model.safetensors").read_bytes())
    state["model.decoder.layers.0.fc1.bias"][3] = torch.nan
    error = attempt(door, "model.safetensors", save(state), tmp_path)
    assert "'model.decoder.layers.0.fc1.bias' holds NaN" in str(error)


def test_an_archive_that_grows_or_reaches_out_is_refused(doors: dict[str, Door], tmp_path: Path) -> None:
    bomb = tmp_path / "bomb"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}q\x00." + b"\0" * 50_000_000)
    error = attempt(doors["fairseq"], "model.pt", bomb.read_bytes(), tmp_path)
    assert "compressed" in str(error)
    door, outside = doors["pickled"], tmp_path / "evil"
    path = door.directory / "pytorch_model.bin"
    reaching = tmp_path / "reaching"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(reaching, "w") as new:
        for entry in old.infolist():
            new.writestr(entry.filename, old.read(entry))
        new.writestr(f"archive/../../../../..{outside}", b"x")
        new.writestr(str(outside), b"x")
    attempt(door, "pytorch_model.bin", reaching.read_bytes(), tmp_path)  # whatever is made of it, nothing is unpacked
    assert not outside.exists()
