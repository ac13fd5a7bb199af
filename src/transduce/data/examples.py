"""Texts with labels, tags or nothing beside them, from files to ids on disk: what other tasks than translation need.

documents   whole files, as they are                     a language model
texts       a text a line; of a .tsv its last column     masked words, span corruption
labelled    label TAB text                               classification
tagged      words TAB as many tags                       tagging

They are kept as `Pairs`: the text's ids on one side, and on the other the label, a tag for each token, or nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

from transduce.data.corpus import read_lines
from transduce.data.fingerprint import is_current
from transduce.data.holdout import LARGEST_SHARE, holdout_share, is_held_out
from transduce.data.shards import Pairs, PairWriter
from transduce.errors import InputError
from transduce.storage import file_digest, write_whole
from transduce.text import Tokenizer
from transduce.text.tokenizer import EOS, SubwordKind
from transduce.text.vocabularies import read_vocabulary, vocabulary_of

__all__ = [
    "ExamplePreparation",
    "Form",
    "PreparedExamples",
    "encode_examples",
    "prepare_examples",
    "prepared_from_others",
]

Form = Literal["documents", "texts", "labelled", "tagged"]
Report = Callable[[str, int], None]
AT_ONCE = 2_000
LONGEST = 512
"""Tokens that are read of a text that is measured on."""
NO_TAG = 0
"""Beside a token that does not begin a word; tag n is written as n + 1."""


class Example(NamedTuple):
    """A text, and the names that belong to it: none, one, or one for each word."""

    text: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExamplePreparation:
    """What to prepare, and how. The same preparation is not made twice."""

    form: Form
    files: Sequence[Path]
    dev: Sequence[Path] = ()
    """Held out if not given: a share of the texts, or the end of each document."""
    vocab_size: int = 8000
    kind: SubwordKind = "bpe"
    protected: Sequence[str] = ()
    tags: Sequence[str] = ()
    """Of the vocabulary: symbols that are no text, such as the one for a masked word."""
    vocabulary: bytes | None = None
    """A tokenizer's model, if the vocabulary is not to be learned."""
    longest: int = 256
    """Tokens that are kept of a text, its end included; documents are kept whole."""

    @property
    def name(self) -> str:
        """The files' names, for messages."""
        return ", ".join(path.name for path in self.files)

    def fingerprint(self) -> str:
        """Changes when the files or the settings do."""
        given = None if self.vocabulary is None else blake2b(self.vocabulary, digest_size=16).hexdigest()
        settings = [self.form, self.vocab_size, self.kind, list(self.protected), list(self.tags), self.longest, given]
        files = [[file_digest(path) for path in paths] for paths in (self.files, self.dev)]
        return json.dumps(["examples-1", settings, files])


@dataclass(frozen=True)
class PreparedExamples:
    """Texts as ids, and what stands beside them."""

    vocabulary: Tokenizer
    train: Pairs
    dev: Pairs
    labels: list[str]
    """By number."""


def prepare_examples(
    preparation: ExamplePreparation, directory: Path, report: Report = lambda stage, done: None
) -> PreparedExamples:
    """Prepare files in `directory`, or read what was prepared there before."""
    for path in (*preparation.files, *preparation.dev):  # so that a missing file is named before anything is written
        next(iter(_read(path, preparation.form)), None)
    summary = directory / "prepared.json"
    if not is_current(summary, preparation.fingerprint()):
        directory.mkdir(parents=True, exist_ok=True)
        summary.unlink(missing_ok=True)
        labels = _write(preparation, directory, report)
        contents = {"fingerprint": preparation.fingerprint(), "labels": labels}
        write_whole(summary, json.dumps(contents, ensure_ascii=False).encode())
    labels = json.loads(summary.read_text(encoding="utf-8"))["labels"]
    vocabulary = read_vocabulary(directory / "tokenizer.model")
    return PreparedExamples(vocabulary, Pairs(directory / "train"), Pairs(directory / "dev"), labels)


def encode_examples(
    files: Sequence[Path],
    form: Form,
    vocabulary: Tokenizer,
    labels: Sequence[str],
    directory: Path,
    held_out: bool = False,
) -> Pairs:
    """Files as ids of a vocabulary and labels that are there already; for measuring.

    With `held_out` only what is held out of them where there is no dev set.
    """
    examples = [example for path in files for example in _read(path, form)]
    if held_out:
        examples = _held_out(examples, form)[1]
    preparation = ExamplePreparation(form, files, longest=LONGEST)
    _check_labels(examples, list(labels) if form in ("labelled", "tagged") else [], preparation)
    if form in ("texts", "documents"):
        examples = [Example(example.text) for example in examples]
    numbers = {label: number for number, label in enumerate(labels)}
    with PairWriter(directory) as writer:
        for ids, beside in _encoded(examples, preparation, vocabulary, numbers):
            writer.write(ids, beside)
    return Pairs(directory)


def prepared_from_others(preparation: ExamplePreparation, directory: Path) -> bool:
    """Whether other files, or files with other settings, were prepared there before."""
    summary = directory / "prepared.json"
    return summary.is_file() and not is_current(summary, preparation.fingerprint())


def _write(preparation: ExamplePreparation, directory: Path, report: Report) -> list[str]:
    report("reading", 0)
    train = [example for path in preparation.files for example in _read(path, preparation.form)]
    dev = [example for path in preparation.dev for example in _read(path, preparation.form)]
    if not dev:
        train, dev = _held_out(train, preparation.form)
    if not train or not dev:
        raise InputError(
            "there is too little text to train on some and measure on the rest.",
            where=preparation.name,
            remedy="Use more text, or give a dev set of your own.",
        )
    labels = sorted({name for example in train for name in example.names})
    _check_labels(dev, labels, preparation)
    report("learning the vocabulary", len(train))
    if preparation.vocabulary is not None:
        vocabulary = vocabulary_of(preparation.vocabulary)
    else:
        vocabulary = Tokenizer.learn(
            (example.text for example in train),
            preparation.vocab_size,
            preparation.kind,
            preparation.protected,
            preparation.tags,
            documents=preparation.form == "documents",
        )
    write_whole(directory / "tokenizer.model", vocabulary.model)
    numbers = {label: number for number, label in enumerate(labels)}
    for name, examples in (("train", train), ("dev", dev)):
        with PairWriter(directory / name) as writer:
            remaining = iter(examples)
            while block := list(islice(remaining, AT_ONCE)):
                report("encoding", writer.count)
                for ids, beside in _encoded(block, preparation, vocabulary, numbers):
                    writer.write(ids, beside)
    return labels


def _encoded(
    block: list[Example], preparation: ExamplePreparation, vocabulary: Tokenizer, numbers: dict[str, int]
) -> Iterator[tuple[list[int], list[int]]]:
    """Ids of texts, and what stands beside them."""
    if preparation.form == "documents":
        for example in block:
            yield [*vocabulary.encode_document(example.text), EOS], []
    elif preparation.form == "tagged":
        for example in block:
            words = vocabulary.encode_batch(example.text.split())
            ids = [token for word in words for token in word]
            tags = [
                numbers[tag] + 1 if place == 0 else NO_TAG
                for word, tag in zip(words, example.names, strict=True)
                for place in range(len(word))
            ]
            yield ids[: preparation.longest - 1], tags[: preparation.longest - 1]
    else:
        rows = vocabulary.encode_batch([example.text for example in block])
        for example, row in zip(block, rows, strict=True):
            yield row[: preparation.longest - 1], [numbers[name] for name in example.names]


def _held_out(examples: list[Example], form: Form) -> tuple[list[Example], list[Example]]:
    """What to train on and what to measure on: the end of each document, or a share of the texts."""
    if form == "documents":
        cuts = [_cut(example.text) for example in examples]
        return [Example(start) for start, _ in cuts if start], [Example(end) for _, end in cuts if end]
    share = holdout_share(len(examples))
    apart = [is_held_out(example.text, share) for example in examples]
    known = {name for example, held in zip(examples, apart, strict=True) if not held for name in example.names}
    # What is held out is our choice: a label that would only be measured on is learned from instead.
    apart = [held and known.issuperset(example.names) for example, held in zip(examples, apart, strict=True)]
    return (
        [example for example, held in zip(examples, apart, strict=True) if not held],
        [example for example, held in zip(examples, apart, strict=True) if held],
    )


def _cut(document: str) -> tuple[str, str]:
    """A document in two, at a line's end if there is one near: nine tenths, and the last one."""
    place = round(len(document) * (1 - LARGEST_SHARE))
    line = document.rfind("\n", place // 2, place) + 1
    place = line or place
    return document[:place], document[place:]


def _check_labels(dev: list[Example], labels: list[str], preparation: ExamplePreparation) -> None:
    known = set(labels)
    for example in dev:
        for name in example.names:
            if name not in known:
                raise InputError(
                    f"{name!r} is measured on but nowhere in what is learned from.",
                    where=preparation.name,
                    remedy="Correct it, or add examples of it.",
                )


def _read(path: Path, form: Form) -> Iterator[Example]:
    if form == "documents":
        text = "\n".join(read_lines(path))
        if not text.strip():
            raise InputError("there is no text in it.", where=str(path), remedy="Give a file with text.")
        yield Example(text + "\n")
        return
    found = False
    for number, line in enumerate(read_lines(path), start=1):
        if line.strip():
            found = True
            yield _example(line, form, f"{path}:{number}")
    if not found:
        raise InputError("there are no lines.", where=str(path), remedy="Give at least one text.")


def _example(line: str, form: Form, where: str) -> Example:
    columns = line.split("\t")
    if form == "texts":
        return Example(columns[-1])
    if len(columns) != 2 or not columns[0].strip() or not columns[1].strip():
        shape = "label TAB text" if form == "labelled" else "words TAB tags"
        raise InputError("this line has not two columns.", where=where, remedy=f"Write {shape} on each line.")
    if form == "labelled":
        return Example(columns[1], (columns[0].strip(),))
    words, tags = columns[0].split(), columns[1].split()
    if len(words) != len(tags):
        raise InputError(
            f"{len(words)} words but {len(tags)} tags.", where=where, remedy="Write one tag for each word."
        )
    return Example(" ".join(words), tuple(tags))
