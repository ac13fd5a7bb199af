"""From text files to ids on disk: clean, hold out a dev set, learn the vocabulary, encode. Done once per run.

Everything is streamed in two passes; what is kept in memory (a sample of text for the vocabulary, the dev set) does not
grow with the corpus.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path

from transduce.data.clean import CleaningCounts, CleaningRules, clean
from transduce.data.corpus import Corpus, Pair
from transduce.data.holdout import holdout_share, is_held_out
from transduce.data.shards import Pairs, PairWriter
from transduce.errors import InputError
from transduce.text import NORMALISATION, Tokenizer
from transduce.text.tokenizer import SubwordKind

__all__ = ["Preparation", "Prepared", "Report", "prepare"]

SAMPLE_PAIRS = 200_000
"""Pairs that the vocabulary is learned from."""
AT_ONCE = 2_000
"""Pairs that are encoded at once."""

Report = Callable[[str, int], None]
"""Called with what is being done and how many pairs it has seen."""


@dataclass(frozen=True)
class Preparation:
    """What to prepare, and how. The same preparation is not made twice."""

    corpus: Corpus
    dev: Corpus | None = None
    """Held out of the corpus if not given: whole groups of equal sources, so that nothing leaks."""
    vocab_size: int = 8000
    kind: SubwordKind = "bpe"
    rules: CleaningRules = field(default_factory=CleaningRules)
    allow_identical: bool = False
    """For toy tasks such as copying: source and target may be the same text."""

    def fingerprint(self) -> str:
        """Changes when the files or the settings do."""
        files = [path for corpus in (self.corpus, self.dev) if corpus for path in (corpus.source, corpus.target)]
        states = [(str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in files if path]
        settings = (self.vocab_size, self.kind, asdict(self.rules), self.allow_identical, NORMALISATION)
        return json.dumps([states, settings])


@dataclass(frozen=True)
class Prepared:
    """A corpus as ids, the vocabulary it was encoded with, and the dev set as text."""

    directory: Path
    tokenizer: Tokenizer
    train: Pairs
    dev: Pairs
    dev_sources: list[str]
    dev_references: list[str]
    counts: dict[str, int]
    """Pairs read, kept and dropped, by reason."""


def prepare(preparation: Preparation, directory: Path, report: Report = lambda stage, done: None) -> Prepared:
    """Prepare a corpus in `directory`, or read what was prepared there before."""
    summary = directory / "prepared.json"
    # Read one pair first, so that a missing or unreadable file is named before anything is written.
    for corpus in (preparation.corpus, preparation.dev):
        if corpus is not None:
            next(corpus.pairs(allow_identical=True), None)
    fingerprint = preparation.fingerprint()
    if not _is_current(summary, fingerprint):
        directory.mkdir(parents=True, exist_ok=True)
        summary.unlink(missing_ok=True)
        counts = _write(preparation, directory, report)
        contents = json.dumps({"fingerprint": fingerprint, "counts": counts.as_dict()})
        (directory / "prepared.json.part").write_text(contents, encoding="utf-8")
        (directory / "prepared.json.part").replace(summary)
    try:
        return _read(directory)
    except FileNotFoundError as error:
        raise InputError(
            f"the prepared data is incomplete: {error.filename} is missing.",
            where=str(directory),
            remedy="Delete the directory; it is made again.",
        ) from error


def _is_current(summary: Path, fingerprint: str) -> bool:
    try:
        return bool(json.loads(summary.read_text(encoding="utf-8"))["fingerprint"] == fingerprint)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _read(directory: Path) -> Prepared:
    sources, references = ((directory / f"dev.{side}").read_text(encoding="utf-8") for side in ("source", "target"))
    return Prepared(
        directory,
        Tokenizer.load(directory / "tokenizer.model"),
        Pairs(directory / "train"),
        Pairs(directory / "dev"),
        sources.split("\n")[:-1],
        references.split("\n")[:-1],
        json.loads((directory / "prepared.json").read_text(encoding="utf-8"))["counts"],
    )


def _write(preparation: Preparation, directory: Path, report: Report) -> CleaningCounts:
    counts = CleaningCounts()
    sample = _sample(_reported(_cleaned(preparation, counts), "reading", report))
    if not counts.kept:
        raise InputError(
            "no usable pair is left of the corpus.", where=preparation.corpus.name, remedy=counts.summary()
        )
    share = 0.0 if preparation.dev else holdout_share(counts.kept)
    report("learning the vocabulary", counts.kept)
    texts = [text for pair in sample if not is_held_out(pair.source, share) for text in pair]
    if not texts:
        raise _too_few(preparation, counts)
    tokenizer = Tokenizer.learn(texts, preparation.vocab_size, preparation.kind)
    (directory / "tokenizer.model").write_bytes(tokenizer.model)

    dev: list[Pair] = []
    with PairWriter(directory / "train") as train:
        pairs = _reported(_cleaned(preparation, CleaningCounts()), "encoding", report)
        while block := list(islice(pairs, AT_ONCE)):
            held_out = [is_held_out(pair.source, share) for pair in block]
            dev += [pair for pair, out in zip(block, held_out, strict=True) if out]
            _encode(tokenizer, [pair for pair, out in zip(block, held_out, strict=True) if not out], train)
    if preparation.dev is not None:
        given = preparation.dev.pairs(allow_identical=preparation.allow_identical)
        dev = [pair for pair in given if pair.source.strip() and pair.target.strip()]
    if not dev or not train.count:
        raise _too_few(preparation, counts)
    with PairWriter(directory / "dev") as writer:
        _encode(tokenizer, dev, writer)
    for side, lines in (("source", [pair.source for pair in dev]), ("target", [pair.target for pair in dev])):
        (directory / f"dev.{side}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return counts


def _too_few(preparation: Preparation, counts: CleaningCounts) -> InputError:
    return InputError(
        f"{counts.kept} usable pairs are too few to train on some and measure on others.",
        where=preparation.corpus.name,
        remedy="Use more text, or give a dev set of your own.",
    )


def _cleaned(preparation: Preparation, counts: CleaningCounts) -> Iterator[Pair]:
    pairs = preparation.corpus.pairs(allow_identical=preparation.allow_identical)
    return clean(pairs, preparation.rules, counts)


def _encode(tokenizer: Tokenizer, pairs: list[Pair], writer: PairWriter) -> None:
    sources = tokenizer.encode_batch([pair.source for pair in pairs])
    targets = tokenizer.encode_batch([pair.target for pair in pairs])
    for source, target in zip(sources, targets, strict=True):
        writer.write(source, target)


def _sample(pairs: Iterable[Pair]) -> list[Pair]:
    """A uniform sample of a stream of unknown length (reservoir sampling), in the order of the reservoir."""
    generator = random.Random(0)
    kept: list[Pair] = []
    for count, pair in enumerate(pairs):
        if count < SAMPLE_PAIRS:
            kept.append(pair)
        elif (place := generator.randrange(count + 1)) < SAMPLE_PAIRS:
            kept[place] = pair
    return kept


def _reported(pairs: Iterable[Pair], stage: str, report: Report) -> Iterator[Pair]:
    for count, pair in enumerate(pairs):
        if count % AT_ONCE == 0:
            report(stage, count)
        yield pair
