"""Checkpoints as fairseq writes them, with dictionaries and codes: imported, decoded, and refused where they do more.

fairseq itself cannot be installed any more. Its Transformer lives on in `transformers` as FSMT, which says what the
logits are; its way of saving is written here.
"""

from __future__ import annotations

import argparse
import os
import pickle
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from transduce import Translator
from transduce.errors import BundleError
from transduce.interop.fairseq import import_fairseq
from transduce.interop.renumber import Renumbering

MERGES = "h o,ho u,hou s,hous e</w>,t h,th e</w>,p a,i n,pa in,l e,l a</w>,w e</w>,t e,te d</w>"
CODES = "\n".join(["#version: 0.2", *MERGES.split(","), ""])
ENGLISH = ["the", "house", "pain@@", "ted", "we", "t@@", "e@@", "d", "."]
FRENCH = ["la", "maison", "le", "pe@@", "in@@", "t", "on", "."]
SETTINGS = {
    "arch": "transformer", "task": "translation", "source_lang": "en", "target_lang": "fr", "encoder_embed_dim": 16,
    "encoder_ffn_embed_dim": 24, "encoder_layers": 2, "encoder_attention_heads": 2, "decoder_embed_dim": 16,
    "decoder_ffn_embed_dim": 24, "decoder_layers": 2, "decoder_attention_heads": 2, "encoder_normalize_before": False,
    "decoder_normalize_before": False, "encoder_learned_pos": False, "decoder_learned_pos": False, "dropout": 0.1,
    "share_all_embeddings": False, "share_decoder_input_output_embed": True, "activation_fn": "relu",
    "max_source_positions": 64, "adaptive_softmax_cutoff": None, "criterion": "label_smoothed_cross_entropy",
}  # fmt: skip


class Fairseq:
    """A model of fairseq's, and what it computes."""

    def __init__(self, joined: bool) -> None:
        """With a dictionary for both languages, and one matrix, or all apart."""
        from transformers import FSMTConfig, FSMTForConditionalGeneration

        torch.manual_seed(0)
        names = {
            "d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2,
            "decoder_attention_heads": 2, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "max_position_embeddings": 64,
            "scale_embedding": True, "tie_word_embeddings": joined, "init_std": 0.5,
        }  # fmt: skip
        both = list(dict.fromkeys([*ENGLISH, *FRENCH]))
        self.words = (both, both) if joined else (ENGLISH, FRENCH)
        self.settings = SETTINGS | {"share_all_embeddings": joined, "share_decoder_input_output_embed": joined}
        sizes = dict(zip(("src_vocab_size", "tgt_vocab_size"), (len(each) + 4 for each in self.words), strict=True))
        self.model = FSMTForConditionalGeneration(FSMTConfig(langs=["en", "fr"], **sizes, **names)).eval()

    def state(self) -> OrderedDict[str, torch.Tensor]:
        """As fairseq names it, with the buffers that it saves."""
        found = OrderedDict(
            (name.removeprefix("model."), value.clone())
            for name, value in self.model.state_dict().items()
            if "embed_positions" not in name
        )
        for stack in ("encoder", "decoder"):
            found[f"{stack}.version"] = torch.tensor([3.0])
            found[f"{stack}.embed_positions._float_tensor"] = torch.zeros(1)
        return found

    def logits(self, source: list[int], target: list[int]) -> torch.Tensor:
        with torch.no_grad():
            ids = torch.tensor([source])
            found = self.model(input_ids=ids, decoder_input_ids=torch.tensor([target]), use_cache=False)
        return found.logits[0]


@pytest.fixture(scope="module")
def theirs() -> Fairseq:
    return Fairseq(joined=False)


def write(
    folder: Path,
    saved: Any,
    words: tuple[list[str], list[str]] = (ENGLISH, FRENCH),
    codes: str | None = CODES,
    zipped: bool = True,
) -> Path:
    """A directory as people keep it: checkpoint and dictionaries each in a place of its own."""
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "data-bin" / "wmt").mkdir(parents=True)
    checkpoint = folder / "checkpoints" / "checkpoint_best.pt"
    torch.save(saved, checkpoint, _use_new_zipfile_serialization=zipped)  # PyTorch before 1.6 wrote no archives
    for language, mine in zip(("en", "fr"), words, strict=True):
        lines = "".join(f"{word} {100 - place}\n" for place, word in enumerate(mine))
        (folder / "data-bin" / "wmt" / f"dict.{language}.txt").write_text(lines, encoding="utf-8")
    if codes is not None:
        (folder / "bpecodes").write_text(codes, encoding="utf-8")
    return folder


def saved(theirs: Fairseq, **changes: Any) -> dict[str, Any]:
    """What the first versions write: settings in a Namespace."""
    return {
        "args": argparse.Namespace(**(theirs.settings | changes)),
        "model": theirs.state(),
        "optimizer_history": [{"criterion_name": "CrossEntropyCriterion", "num_updates": 7}],
        "extra_state": {"epoch": 1, "val_loss": 2.5},
        "last_optimizer_state": {"state": {0: {"exp_avg": torch.zeros(3)}}},
    }


def check_same(theirs: Fairseq, folder: Path) -> None:
    """The imported model's logits are theirs, renumbered; what is there twice has no chance."""
    translator = Translator.load(folder)
    numbers = [Renumbering.of(len(words) + 4, pad=1, start=2, eos=2, unknown=3) for words in theirs.words]
    text = "we painted the house ."
    (source,) = translator.vocabularies.encode_sources([text])
    dictionary = ["<s>", "<pad>", "</s>", "<unk>", *theirs.words[0]]
    their_source = [numbers[0].theirs[index] for index in source]
    assert [dictionary[index] for index in their_source] == ["we", "pain@@", "ted", "the", "house", "."]
    expected = theirs.logits([*their_source, 2], [2, 4, 5, 6])
    ours = numbers[1].ours()
    model = translator.bundle.model()
    with torch.no_grad():
        found = model(torch.tensor([[*source, 2]]), torch.tensor([[1, ours[4], ours[5], ours[6]]]))[0]
    places = [place for place in range(numbers[1].size) if place not in numbers[1].copies]
    wanted = expected[:, [numbers[1].theirs[place] for place in places]]
    torch.testing.assert_close(found[:, places], wanted, atol=1e-4, rtol=1e-4)
    assert found.softmax(-1)[:, sorted(numbers[1].copies)].max() < 1e-12
    assert isinstance(translator.translate(text).text, str)


@pytest.mark.parametrize("zipped", [True, False])
def test_a_checkpoint_with_its_dictionaries_and_codes(theirs: Fairseq, tmp_path: Path, zipped: bool) -> None:
    folder = write(tmp_path / "theirs", saved(theirs), zipped=zipped)
    imported = import_fairseq(folder, tmp_path / "ours", allow_pickle=True)
    config = imported.bundle.config
    assert (config.source_language, config.target_language) == ("en", "fr")
    check_same(theirs, tmp_path / "ours")


def test_one_dictionary_for_both_languages(tmp_path: Path) -> None:
    joined = Fairseq(joined=True)
    folder = write(tmp_path / "theirs", saved(joined), joined.words)
    imported = import_fairseq(folder, tmp_path / "ours", allow_pickle=True)
    assert imported.bundle.config.architecture["tying"] == "all"
    assert imported.bundle.shares_vocabulary
    check_same(joined, tmp_path / "ours")


def test_the_first_versions_had_queries_keys_and_values_in_one(theirs: Fairseq, tmp_path: Path) -> None:
    old = saved(theirs)
    state = old["model"]
    for name in [name for name in state if ".q_proj." in name]:
        parts = [state.pop(name.replace(".q_proj.", f".{letter}_proj.")) for letter in "qkv"]
        state[name.replace("q_proj.weight", "in_proj_weight").replace("q_proj.bias", "in_proj_bias")] = torch.cat(parts)
    norms = {"self_attn_layer_norm": 0, "encoder_attn_layer_norm": 1, "final_layer_norm": 2}
    for name in [name for name in state if "_layer_norm." in name]:
        for norm, place in norms.items():
            if f".{norm}." in name:
                number = min(place, 1) if name.startswith("encoder") else place
                state[name.replace(norm, f"layer_norms.{number}")] = state.pop(name)
    import_fairseq(write(tmp_path / "theirs", old), tmp_path / "ours", allow_pickle=True)
    check_same(theirs, tmp_path / "ours")


@pytest.fixture
def omegaconf() -> Iterator[Callable[[str, dict[str, Any]], Any]]:
    """Objects of the library that newer checkpoints keep settings in. It is not installed: only names count."""
    made: list[str] = []

    def make(name: str, fields: dict[str, Any]) -> Any:
        module, _, own = name.rpartition(".")
        for each in ("omegaconf", module):
            sys.modules.setdefault(each, ModuleType(each))
            made.append(each)
        parent = sys.modules[module]
        if not hasattr(parent, own):
            setattr(parent, own, type(own, (), {"__module__": module}))
        thing = getattr(parent, own)()
        vars(thing).update(fields)
        return thing

    yield make
    for module in made:
        sys.modules.pop(module, None)


@pytest.mark.parametrize("nested", [False, True])
def test_newer_checkpoints_keep_settings_in_nested_ones(
    theirs: Fairseq, tmp_path: Path, omegaconf: Callable[[str, dict[str, Any]], Any], nested: bool
) -> None:
    new = saved(theirs) | {"args": None}
    if nested:
        nodes = {
            name: omegaconf("omegaconf.nodes.AnyNode", {"_val": value, "_parent": None})
            for name, value in theirs.settings.items()
        }
        model = omegaconf("omegaconf.dictconfig.DictConfig", {"_content": nodes, "_metadata": None})
        new["cfg"] = omegaconf("omegaconf.dictconfig.DictConfig", {"_content": {"model": model}})
    else:
        languages = {name: SETTINGS[name] for name in ("source_lang", "target_lang")}
        rest = {name: value for name, value in theirs.settings.items() if name not in languages}
        new["cfg"] = {"model": argparse.Namespace(**rest), "task": languages}
    folder = write(tmp_path / "theirs", new)
    import_fairseq(folder, tmp_path / "ours", allow_pickle=True)
    check_same(theirs, tmp_path / "ours")


def test_nothing_is_unpickled_unasked(theirs: Fairseq, tmp_path: Path) -> None:
    folder = write(tmp_path / "theirs", saved(theirs))
    with pytest.raises(BundleError, match="--allow-pickle"):
        import_fairseq(folder, tmp_path / "ours")


class Malicious:
    def __init__(self, call: Any, *arguments: Any) -> None:
        self.call, self.arguments = call, arguments

    def __reduce__(self) -> Any:
        return self.call, self.arguments


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        (os.system, ("touch {}",)),
        (eval, ("open({!r}, 'w')",)),
        (getattr, (argparse, "ArgumentParser")),
        (pickle.loads, (b"x",)),
        (bytearray, (10**12,)),
    ],
)
@pytest.mark.parametrize("zipped", [True, False])
def test_whatever_else_it_asks_for_is_refused_by_name(
    theirs: Fairseq, tmp_path: Path, call: Any, arguments: tuple[Any, ...], zipped: bool
) -> None:
    proof = tmp_path / "executed"
    filled = tuple(each.format(str(proof)) if isinstance(each, str) else each for each in arguments)
    if call is getattr:
        filled = ("x", "upper")
    evil = saved(theirs) | {"extra_state": Malicious(call, *filled)}
    folder = write(tmp_path / "theirs", evil, zipped=zipped)
    with pytest.raises(BundleError, match=rf"asks for .*{call.__name__}"):
        import_fairseq(folder, tmp_path / "ours", allow_pickle=True)
    assert not proof.exists()
    assert not (tmp_path / "ours").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder_layers": 3}, "missing: model.encoder.layers.2"),
        ({"encoder_layers": 10**9}, "layers"),
        ({"encoder_layers": "2"}, "encoder_layers"),
        ({"activation_fn": "linear"}, "activation_fn='linear'"),
        ({"encoder_normalize_before": True}, "made differently"),
        ({"adaptive_softmax_cutoff": [10]}, "adaptive_softmax_cutoff"),
        ({"encoder_embed_dim": 32, "decoder_embed_dim": 32}, "shape"),
    ],
)
def test_settings_that_do_not_fit_are_named(
    theirs: Fairseq, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    folder = write(tmp_path / "theirs", saved(theirs, **changes))
    with pytest.raises(BundleError, match=message):
        import_fairseq(folder, tmp_path / "ours", allow_pickle=True)
    assert not (tmp_path / "ours").exists()


def test_missing_dictionaries_and_several_checkpoints_are_said(theirs: Fairseq, tmp_path: Path) -> None:
    folder = write(tmp_path / "theirs", saved(theirs))
    (folder / "data-bin" / "wmt" / "dict.fr.txt").rename(folder / "data-bin" / "wmt" / "dict.de.txt")
    with pytest.raises(BundleError, match=r"dict\.fr\.txt is missing; of dictionaries there are: dict\.de\.txt"):
        import_fairseq(folder, tmp_path / "ours", allow_pickle=True)
    first = folder / "checkpoints" / "checkpoint_best.pt"
    first.rename(folder / "checkpoint3.pt")
    (folder / "checkpoint4.pt").write_bytes((folder / "checkpoint3.pt").read_bytes())
    with pytest.raises(BundleError, match=r"several checkpoints: checkpoint3\.pt, checkpoint4\.pt"):
        import_fairseq(folder, tmp_path / "ours", allow_pickle=True)


def test_subword_units_are_those_of_phobert(tmp_path: Path) -> None:
    """A tokenizer of `transformers` that reads a fairseq dictionary and fastBPE's codes."""
    from transformers import PhobertTokenizer

    from transduce.text.foreign.subwords import SubwordUnits

    merges = MERGES.split(",")
    words = ["the house painted by the theatre", "hthe ouse", "la thela house.", "x"]
    (tmp_path / "codes").write_text("".join(f"{merge} {50 - place}\n" for place, merge in enumerate(merges)))
    (tmp_path / "vocab.txt").write_text("the 3\n")
    theirs = PhobertTokenizer(str(tmp_path / "vocab.txt"), str(tmp_path / "codes"))
    with_counts = SubwordUnits.parse((tmp_path / "codes").read_text())
    without = SubwordUnits.parse(CODES)
    for text in words:
        assert with_counts.cut(text) == without.cut(text) == theirs.tokenize(text)
