"""Other people's models as model directories of ours: what has been read is renumbered, described and written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from transduce.bundle import Bundle, BundleConfig, TaskName
from transduce.errors import BundleError
from transduce.interop.huggingface import HuggingFaceModel, read_huggingface
from transduce.interop.renumber import READ, WRITTEN, Renumbering
from transduce.interop.vocabularies import TheirVocabulary
from transduce.interop.vocabulary_files import read_vocabulary
from transduce.model.family import Network, make_network
from transduce.storage import storage_errors
from transduce.text.frame import SOURCE, TARGET
from transduce.text.languages import Direction
from transduce.text.tokenizer import BOS, EOS, PAD

__all__ = ["Imported", "import_huggingface", "write_imported"]

TASKS: dict[str, TaskName] = {
    "marian": "translation",
    "m2m_100": "translation",
    "mbart": "translation",
    "bart": "text-to-text",
    "pegasus": "text-to-text",
    "t5": "text-to-text",
    "gpt2": "language-model",
    "vit": "image-classification",
}
"""What models of a family have learned, where their class does not say more."""
HEADS: dict[str, TaskName] = {"masked": "masked-language-model", "sentence": "classification", "token": "tagging"}
END = "</s>"
BEAM = 4
"""Where a model does not say how it was searched."""
MOST_BEAMS, MOST_ALPHA, MOST_NGRAM, MOST_CARD = 64, 10, 100, 1 << 16
"""What is more is no setting of a search, and no card."""
LICENCE = re.compile(r"^license:\s*([\w.\-+ ]{1,40})\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Imported:
    """What was made of a model of someone else."""

    bundle: Bundle
    kind: str
    """What it was there."""
    parameters: int
    pieces: int | None
    """Of its vocabulary; None for pictures."""
    notes: list[str] = field(default_factory=list)
    """What is otherwise here than it was there."""


def import_huggingface(
    directory: Path, output: Path, direction: Direction | None = None, allow_pickle: bool = False
) -> Imported:
    """Make a model directory of ours of a Hugging Face one.

    `direction` says from which language into which: needed where a model knows many, and else what its card is to say.
    Pickled weights are read only with `allow_pickle`, and then nothing of them but tensors.
    """
    found = read_huggingface(directory, allow_pickle)
    config: Any = found.model.config
    described = {
        "network": found.kind.network,
        "task": HEADS[config.head] if found.kind.network == "encoder-only" else TASKS[found.kind.model_type],
        "decoding": _decoding(found) if found.kind.network == "transformer" else {},
        "labels": _labels(found),
        "licence": _licence(directory),
    }
    name = f"{found.kind.architecture} of Hugging Face's transformers"
    if found.kind.network == "vision":
        return write_imported(output, name, found.model, None, Direction(), described)
    forced = found.generation.get("forced_bos_token_id", found.settings.get("forced_bos_token_id"))
    vocabulary = read_vocabulary(directory, found.settings | {"forced_bos_token_id": forced})
    chosen = vocabulary.direction(direction)
    if described["task"] == "text-to-text" and all(chosen):
        described["task"] = "translation"
    return write_imported(output, name, found.model, vocabulary, chosen, described)


def write_imported(
    output: Path,
    kind: str,
    model: nn.Module,
    vocabulary: TheirVocabulary | None,
    direction: Direction,
    described: Mapping[str, Any],
) -> Imported:
    """Write a model directory; `model` and `vocabulary` have their ids, `described` is what its config.json says."""
    config: Any = model.config
    weights = {name: value.detach() for name, value in model.named_parameters()}
    vocabularies, languages, notes = None, {}, []
    if vocabulary is not None:
        vocabulary = _fitted(vocabulary, config)
        ends = None
        if vocabulary.lang_after_end:
            ends = vocabulary.languages[direction.source or ""]
            vocabulary = replace(vocabulary, after_source=(f"{END}'",))
        sides = _numbers(vocabulary, config, direction, described["network"], again=ends is not None)
        config, weights = _renumbered(model, sides, described["network"], ends)
        vocabularies = vocabulary.vocabularies(sides, direction)
        languages, notes = _languages(vocabulary, direction), _notes(vocabulary)
    bundle_config = BundleConfig(architecture=asdict(config), **described, **languages)
    card = _card(output.resolve().name, kind, bundle_config, notes)
    with storage_errors(output.parent):
        bundle = Bundle.write(output, bundle_config, weights, vocabularies, {}, card)
    parameters = sum(value.numel() for value in weights.values())
    return Imported(bundle, kind, parameters, vocabularies.source.size if vocabularies else None, notes)


def _fitted(vocabulary: TheirVocabulary, config: Any) -> TheirVocabulary:
    """A vocabulary with as many pieces as the model has rows."""
    if (getattr(config, "target_vocab_size", None) is None) != (vocabulary.apart is None):
        raise BundleError(
            "of model and vocabulary one has a side each, and the other both in one.", remedy="Copy the model again."
        )
    fitted = vocabulary.widened(config.vocab_size)
    return fitted if fitted.apart is None else replace(fitted, apart=fitted.apart.widened(config.output_size))


def _numbers(
    vocabulary: TheirVocabulary, config: Any, direction: Direction, network: Network, *, again: bool
) -> tuple[Renumbering, Renumbering]:
    """The new ids of source and target; with `again`, the end of a sentence has another one that is last."""
    pad, start, eos = config.pad_id, config.bos_id, config.eos_id
    if network == "decoder-only":  # which does without padding; what stands for it in config.json may be a letter
        pad = vocabulary.pad
    if network == "encoder-only":  # such a model has no use for them, so only its vocabulary knows
        first = next((each for each in vocabulary.before_source if isinstance(each, int)), vocabulary.eos)
        pad, start, eos = vocabulary.pad, first, vocabulary.eos
    if vocabulary.lang_after_end and not vocabulary.before_target:  # mBART starts with the language that it writes
        start = vocabulary.languages[direction.target or ""]
    found = []
    for each in (vocabulary, vocabulary.apart or vocabulary):
        numbers = Renumbering.of(len(each.names), pad=pad, start=start, eos=eos, unknown=each.unknown)
        found.append(numbers.with_copy(eos) if again else numbers)
    return found[0], found[1]


@torch.no_grad()
def _renumbered(
    model: nn.Module, sides: tuple[Renumbering, Renumbering], network: Network, ends: int | None
) -> tuple[Any, dict[str, Tensor]]:
    """A model's configuration and weights with our ids.

    Where its sources end with something else than the end of a sentence, `ends` is that id of theirs: sources then
    have an embedding of their own, in which our end is theirs.
    """
    config: Any = model.config
    source, target = sides
    names_labels = network == "encoder-only" and config.head != "masked"
    changed = {"vocab_size": source.size, "pad_id": PAD, "bos_id": BOS, "eos_id": EOS}
    if getattr(config, "target_vocab_size", None) is not None:
        changed["target_vocab_size"] = target.size
    if not names_labels:
        changed["logits_bias"] = True
    if ends is not None:
        changed["tying"] = {"all": "target", "embeddings": "none"}.get(config.tying, config.tying)
    state = dict(model.state_dict())
    bias = state.get("projection.bias")
    for name, value in state.items():
        if name in READ:
            state[name] = source.rows(value)
            if ends is not None:
                state[name][EOS] = value[ends]
        elif name in WRITTEN and not names_labels:
            state[name] = target.rows(value)
    if not names_labels:
        state["projection.bias"] = target.bias(bias, config.output_size)
    config = replace(config, **changed)
    with torch.device("meta"):
        described = make_network(network, asdict(config))
    return config, {name: state[name].contiguous() for name, _ in described.named_parameters()}


def _languages(vocabulary: TheirVocabulary, direction: Direction) -> dict[str, Any]:
    """What config.json says of languages: where the target is chosen by a tag, all of them, the usual one first."""
    found: dict[str, Any] = {"source_language": direction.source, "target_language": direction.target}
    if TARGET in (*vocabulary.before_source, *vocabulary.before_target):
        found["target_languages"] = sorted(vocabulary.languages, key=lambda language: language != direction.target)
    return found


def _notes(vocabulary: TheirVocabulary) -> list[str]:
    notes = ["What its vocabulary has no piece for is read as unknown; it is never written."]
    if vocabulary.lang_after_end:
        notes.append("Its languages are fixed: import it again for others.")
    elif SOURCE in vocabulary.before_source:
        notes.append("The language that it reads is fixed: import it again for another.")
    return notes


def _decoding(found: HuggingFaceModel) -> dict[str, Any]:
    """How it is searched: as its files say, by the length penalty that they mean."""
    values = {**found.settings, **found.generation}
    beam, alpha, ngram = (values.get(name) for name in ("num_beams", "length_penalty", "no_repeat_ngram_size"))
    return {
        "beam": beam if isinstance(beam, int) and 1 <= beam <= MOST_BEAMS else BEAM,
        "length_penalty": "power",
        "alpha": float(alpha) if isinstance(alpha, int | float) and abs(alpha) <= MOST_ALPHA else 1.0,
        **({"no_repeat_ngram": ngram} if isinstance(ngram, int) and 0 < ngram <= MOST_NGRAM else {}),
    }


def _labels(found: HuggingFaceModel) -> list[str]:
    """The names of what it tells apart, in their order."""
    config: Any = found.model.config
    if found.kind.network not in ("encoder-only", "vision") or getattr(config, "labels", None) is None:
        return []
    names = found.settings.get("id2label")
    named = names if isinstance(names, dict) else {}
    return [str(named.get(str(index), f"LABEL_{index}")) for index in range(config.labels)]


def _licence(directory: Path) -> str | None:
    """What the front matter of its card says."""
    try:
        with (directory / "README.md").open(encoding="utf-8") as file:
            found = LICENCE.search(file.read(MOST_CARD))
    except (OSError, ValueError):
        return None
    return found.group(1).strip() if found else None


def _card(name: str, kind: str, config: BundleConfig, notes: list[str]) -> str:
    direction = " → ".join(each or "?" for each in (config.source_language, config.target_language))
    lines = [
        f"It was a {kind}, and was imported with transduce; weights and results are those of its makers.",
        *([f"Languages: {direction}."] if config.task in ("translation", "text-to-text") else []),
        f"Licence: {config.licence or 'not stated; ask where you have it from'}.",
        *notes,
    ]
    listed = "\n".join(f"- {line}" for line in lines)
    return f"# {name}\n\n{listed}\n\nState here where it came from and who made it.\n"
