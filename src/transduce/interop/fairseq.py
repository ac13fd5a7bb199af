"""Transformers of fairseq: a checkpoint, two dictionaries and the codes of their subwords, wherever they lie.

A checkpoint is a pickle. It is read by a loader that makes nothing but tensors and plain values: what fairseq and its
configuration library would have been called for becomes a record of settings, and anything else that it asks for is
refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transduce.errors import BundleError, ConfigError
from transduce.interop.imported import Imported, write_imported
from transduce.interop.kinds import bart
from transduce.interop.kinds.kind import tying_of
from transduce.interop.names import state_from_theirs
from transduce.interop.pickles import read_pickle
from transduce.interop.renumber import Renumbering
from transduce.interop.settings import Settings
from transduce.interop.vocabularies import TheirVocabulary
from transduce.interop.vocabulary_files import read_sentencepiece, read_text
from transduce.interop.weights import Header, Weights
from transduce.model import Transformer, TransformerConfig
from transduce.model.config import Tying
from transduce.text.foreign.subwords import SubwordUnits
from transduce.text.languages import Direction

__all__ = ["find_checkpoint", "import_fairseq"]

FIRST = ("<s>", "<pad>", "</s>", "<unk>")
"""What stands before the words of every dictionary."""
PAD, EOS, UNKNOWN = 1, 2, 3
USUAL = ("checkpoint_best.pt", "checkpoint_last.pt", "model.pt")
"""Which of several checkpoints is taken, the first that is there."""
CODES = re.compile(r"(bpe[._-]?)?codes?(\..*)?|.*\.codes?|bpe\.\d+", re.IGNORECASE)
PIECES = re.compile(r".*(sentencepiece|spm|spiece).*\.model|.*\.spm", re.IGNORECASE)
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_fast": "gelu_tanh", "gelu_accurate": "gelu_tanh", "swish": "silu"}
MOST_FILES = 10_000
TYPES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}
OLD_NORMS = {
    "encoder": ("self_attn_layer_norm", "final_layer_norm"),
    "decoder": ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"),
}
"""What numbered norms of the first versions are called since."""


class Record:
    """What stands here for an object of fairseq or of its libraries: its fields, and nothing that could be called."""

    def __new__(cls, *_: Any) -> Record:
        """An empty one, whatever it was to be made of."""
        return object.__new__(cls)

    def __init__(self, *_: Any) -> None:
        pass


RECORDS = (
    "argparse.Namespace",
    "omegaconf.dictconfig.DictConfig",
    "omegaconf.listconfig.ListConfig",
    "omegaconf.base.ContainerMetadata",
    "omegaconf.base.Metadata",
    "omegaconf.nodes.AnyNode",
    "typing.Any",
)
ALLOWED = {" ".join(name.rsplit(".", 1)): (Record, name) for name in RECORDS}
"""What a checkpoint may ask for besides tensors, and what it gets."""


def find_checkpoint(path: Path) -> Path | None:
    """The checkpoint of a directory, however deep it lies, or the file itself; None if nothing there is fairseq's."""
    if path.is_file():
        return path if path.suffix == ".pt" else None
    found = sorted(each for each in _files(path) if each.suffix == ".pt")
    for name in USUAL:
        named = [each for each in found if each.name == name]
        if len(named) == 1:
            return named[0]
    if len(found) > 1:
        names = ", ".join(str(each.relative_to(path)) for each in found[:10])
        raise BundleError(
            f"there are several checkpoints: {names}.", where=str(path), remedy="Give one of these files."
        )
    return found[0] if found else None


def import_fairseq(
    path: Path, output: Path, direction: Direction | None = None, allow_pickle: bool = False
) -> Imported:
    """Make a model directory of ours of a fairseq `transformer`: a directory, or a checkpoint in one.

    Its texts are expected as they were for fairseq: cut into words by spaces where it has subword-nmt codes. With
    SentencePiece they are plain text.
    """
    checkpoint = find_checkpoint(path)
    if checkpoint is None:
        raise BundleError("there is no fairseq checkpoint (.pt) here.", where=str(path), remedy="Give its directory.")
    if not allow_pickle:
        raise BundleError(
            "a fairseq checkpoint is a pickle, and a pickle can hold a program.",
            where=str(checkpoint),
            remedy="If you trust where it comes from, add --allow-pickle: it is then read by a loader that takes "
            "nothing but tensors and settings.",
        )
    saved = read_pickle(checkpoint, ALLOWED)
    settings = Settings(_settings(saved, checkpoint), checkpoint)
    weights = _weights(saved, checkpoint)
    spoken = Direction(*(_text(settings.values.get(name)) for name in ("source_lang", "target_lang")))
    folder = path if path.is_dir() else path.parent
    vocabulary = _vocabulary(folder, spoken)
    model = _model(settings, weights, vocabulary)
    described = {
        "network": "transformer",
        "task": "translation",
        "decoding": {"beam": 5, "length_penalty": "power", "alpha": 1.0},
    }
    chosen = Direction(*(asked or said for asked, said in zip(direction or Direction(), spoken, strict=True)))
    return write_imported(output, "transformer of fairseq", model, vocabulary, chosen, described)


# The checkpoint


def _settings(saved: Any, path: Path) -> Mapping[str, Any]:
    """The model's settings: in older checkpoints a record, in newer ones a part of nested ones."""
    if not isinstance(saved, dict) or not isinstance(saved.get("model"), dict):
        raise BundleError("this is not a fairseq checkpoint: it has no 'model'.", where=str(path), remedy="Give one.")
    for each in (saved.get("args"), _fields(saved.get("cfg")).get("model")):
        found = _fields(each)
        if found:
            task = _fields(_fields(saved.get("cfg")).get("task"))
            return {**{name: task[name] for name in ("source_lang", "target_lang") if name in task}, **found}
    raise BundleError("it does not say how its model is made ('args' or 'cfg').", where=str(path))


def _fields(value: Any) -> dict[str, Any]:
    """The names and values of a record, of one of omegaconf's, or of a plain dict."""
    if isinstance(value, Record):
        content = vars(value).get("_content", vars(value))
        value = content if isinstance(content, dict) else {}
    if not isinstance(value, dict):
        return {}
    plain = {name: vars(each).get("_val") if _is_node(each) else each for name, each in value.items()}
    return {name: each for name, each in plain.items() if isinstance(name, str)}


def _is_node(value: Any) -> bool:
    return isinstance(value, Record) and "_val" in vars(value)


def _weights(saved: Mapping[str, Any], path: Path) -> Weights:
    """Its tensors by the names that Hugging Face gave them, who took them over from fairseq."""
    headers: dict[str, Header] = {}
    for name, tensor in saved["model"].items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise BundleError(f"{name!r:.60} is not a tensor.", where=str(path))
        for part, read in _parts(name, tensor):
            shape = tuple(read().shape)
            headers[part] = Header(shape, TYPES.get(tensor.dtype, str(tensor.dtype)), path, read)
    return Weights(headers, path)


def _parts(name: str, tensor: Tensor) -> Iterator[tuple[str, Callable[[], Tensor]]]:
    """A tensor by its present name; the first versions had queries, keys and values in one."""
    stack = name.split(".")[0]
    if old := re.fullmatch(r"(.*)\.layer_norms\.(\d)\.(weight|bias)", name):
        norms = OLD_NORMS.get(stack, ())
        if int(old[2]) < len(norms):
            name = f"{old[1]}.{norms[int(old[2])]}.{old[3]}"
    if name in ("decoder.output_projection.weight", "decoder.embed_out"):
        yield "lm_head.weight", lambda: tensor
    elif joined := re.fullmatch(r"(.*)\.in_proj_(weight|bias)", name):
        third = len(tensor) // 3 if tensor.dim() else 0
        for place, letter in enumerate("qkv"):
            yield f"model.{joined[1]}.{letter}_proj.{joined[2]}", partial(tensor.narrow, 0, place * third, third)
    elif not re.search(r"\.embed_positions\._float_tensor$|\.version$", name):  # which hold nothing
        yield f"model.{name}", lambda: tensor


def _model(settings: Settings, weights: Weights, vocabulary: TheirVocabulary) -> Transformer:
    """The network that its settings describe, with its weights; shapes are compared before anything is allocated."""
    for name in ("adaptive_softmax_cutoff", "cross_self_attention", "no_cross_attention", "no_decoder_final_norm"):
        if settings.values.get(name):
            raise BundleError(f"{name} has no counterpart here.", where=str(settings.path))
    sizes = {name: settings.size(f"encoder_{name}") for name in ("embed_dim", "ffn_embed_dim", "attention_heads")}
    decoder = {name: settings.size(f"decoder_{name}", sizes[name]) for name in sizes}
    same = ("normalize_before", "learned_pos")
    flags = [[settings.flag(f"{side}_{name}", False) for name in same] for side in ("encoder", "decoder")]
    if flags[0] != flags[1] or sizes["embed_dim"] != decoder["embed_dim"]:
        raise BundleError(
            "its encoder and decoder are made differently, which has no counterpart here.", where=str(settings.path)
        )
    pre, learned = flags[0]
    tied = settings.flag("share_all_embeddings", False) or settings.flag("share_decoder_input_output_embed", False)
    apart = vocabulary.apart
    try:
        config = TransformerConfig(
            vocab_size=len(vocabulary.names),
            target_vocab_size=None if apart is None else len(apart.names),
            encoder_layers=_layers(settings, weights, "encoder_layers"),
            decoder_layers=_layers(settings, weights, "decoder_layers"),
            d_model=sizes["embed_dim"],
            d_ff=sizes["ffn_embed_dim"],
            heads=sizes["attention_heads"],
            decoder_heads=_other(decoder["attention_heads"], sizes["attention_heads"]),
            decoder_d_ff=_other(decoder["ffn_embed_dim"], sizes["ffn_embed_dim"]),
            dropout=settings.number("dropout", 0.1),
            attention_dropout=settings.number("attention_dropout", 0.0),
            activation=settings.choice("activation_fn", ACTIVATIONS, "relu"),  # type: ignore[arg-type]
            norm_position="pre" if pre else "post",
            positions="none" if settings.flag("no_token_positional_embeddings", False) else "learned",
            max_length=settings.size("max_source_positions", 1024),
            attention_bias=True,
            tying=tying_of(weights, bart.EMBEDDINGS, tied) if apart is None else _apart(weights, tied),
            scale_embeddings=not settings.flag("no_scale_embedding", False),
            embedding_norm=settings.flag("layernorm_embedding", False),
            pad_id=PAD,
            bos_id=EOS,
            eos_id=EOS,
        )
        with torch.device("meta"):
            described = Transformer(config)
    except (ConfigError, TypeError, RuntimeError) as error:  # the last two: sizes beyond 64 bits
        what = error.what if isinstance(error, ConfigError) else "no model can have these sizes."
        raise BundleError(what, where=str(settings.path)) from error
    state = state_from_theirs(bart.LEARNED if learned else bart.FAIRSEQ, weights, described, config)
    model = Transformer(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(state[name])
    return model.eval()


def _layers(settings: Settings, weights: Weights, name: str) -> int:
    found = settings.size(name)
    if found > len(weights):  # before so many are made, be it without weights
        raise BundleError(f"it describes {found} layers, but has {len(weights)} tensors.", where=str(settings.path))
    return found


def _apart(weights: Weights, tied: bool) -> Tying:
    """Which matrices are one, of a model with two vocabularies."""
    found = tying_of(weights, bart.SEPARATE, tied)
    return "target" if found in ("all", "target") else "none"


def _other(decoder: int, encoder: int) -> int | None:
    return None if decoder == encoder else decoder


# The vocabulary


def _vocabulary(folder: Path, spoken: Direction) -> TheirVocabulary:
    """Of the dictionaries, the codes and the pieces below a folder."""
    files = list(_files(folder))
    sides = [_dictionary(folder, files, language) for language in spoken]
    processors = [_processor(folder, files, language) for language in spoken]
    source, target = (
        TheirVocabulary(
            names,
            frozenset({*range(len(FIRST)), *(i for i, name in enumerate(names) if name.startswith("madeupword"))}),
            EOS,
            partial(_one, processor),
            pad=PAD,
            unknown=UNKNOWN,
            spoken=spoken,
        )
        for names, processor in zip(sides, processors, strict=True)
    )
    if sides[0] != sides[1]:
        return replace(source, apart=target)
    if processors[0] == processors[1]:
        return source
    return replace(source, processors=lambda _: {"source": processors[0], "target": processors[1]})


def _one(processor: Mapping[str, Any], _: Renumbering) -> Mapping[str, Mapping[str, Any]]:
    """The same for whatever ids."""
    return {"both": processor}


def _dictionary(folder: Path, files: list[Path], language: str | None) -> list[str]:
    """The words of dict.LANGUAGE.txt by id."""
    found = [each for each in files if re.fullmatch(r"dict\.[^.]+\.txt", each.name)]
    mine = [each for each in found if each.name == f"dict.{language}.txt"] or (found if len(found) == 1 else [])
    if not mine:
        others = ", ".join(sorted(each.name for each in found)) or "none"
        raise BundleError(
            f"dict.{language or '…'}.txt is missing; of dictionaries there are: {others}.",
            where=str(folder),
            remedy="Put the dictionaries that the model was trained with below this folder.",
        )
    names = list(FIRST)
    for number, line in enumerate(read_text(mine[0]).split("\n"), start=1):
        if not line.strip():
            continue
        word, _, count = line.rstrip("\r").removesuffix(" #fairseq:overwrite").rpartition(" ")
        if not word or not count.isdigit():
            raise BundleError("this is not a word and its count.", where=f"{mine[0]}:{number}")
        names.append(word)
    return names


def _processor(folder: Path, files: list[Path], language: str | None) -> dict[str, Any]:
    """How texts are cut: by a SentencePiece model or by codes, one for all or one a language; else into words."""
    for pattern, described in ((PIECES, read_sentencepiece), (CODES, _codes)):
        found = [each for each in files if pattern.fullmatch(each.name) and each.suffix != ".pt"]
        mine = [each for each in found if language and language in each.name.split(".")] or found
        if len(mine) > 1:
            names = ", ".join(str(each.relative_to(folder)) for each in mine[:10])
            raise BundleError(
                f"there are several files of codes: {names}.", where=str(folder), remedy="Leave one, or one a language."
            )
        if mine:
            return described(mine[0])
    return {"kind": "subword-nmt", "codes": None}


def _codes(path: Path) -> dict[str, Any]:
    codes = read_text(path)
    try:
        SubwordUnits.parse(codes)
    except ValueError as error:
        raise BundleError(getattr(error, "what", str(error)), where=str(path), remedy="Copy it again.") from error
    return {"kind": "subword-nmt", "codes": codes}


def _files(folder: Path) -> Iterator[Path]:
    """The files below a folder, not more than anyone would put there."""
    for number, each in enumerate(folder.rglob("*")):
        if number > MOST_FILES:
            raise BundleError(
                f"there are more than {MOST_FILES} files.", where=str(folder), remedy="Give its own folder."
            )
        if each.is_file():
            yield each


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
