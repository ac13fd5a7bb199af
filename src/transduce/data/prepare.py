"""From text files to ids on disk: clean, hold out a dev set, learn the vocabulary, encode. Done once per run.

Everything is streamed in two passes; what is kept in memory (a sample of text for the vocabulary, the dev set) does not
grow with the corpora, but for one bit a pair: whether it was worth keeping.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from hashlib import blake2b
from itertools import compress, groupby, islice
from operator import itemgetter, not_
from pathlib import Path
from typing import Any, TypeVar

from transduce.data.clean import CleaningCounts, CleaningRules, SeenPairs, clean
from transduce.data.corpus import Corpus, Pair
from transduce.data.encoding import Encoder, Hands
from transduce.data.fingerprint import is_current
from transduce.data.holdout import holdout_share, is_held_out, source_key
from transduce.data.lexicon import learn_lexicon
from transduce.data.shards import Pairs, PairWriter
from transduce.data.variants import Variants
from transduce.errors import ConfigError, InputError, nearest
from transduce.storage import file_digest
from transduce.text import Normalisation, Vocabularies, normalise
from transduce.text.languages import same_language
from transduce.text.slots import SLOT_SYMBOLS
from transduce.text.tokenizer import SubwordKind

__all__ = ["Preparation", "Prepared", "Report", "prepare", "prepared_otherwise"]

SAMPLE_PAIRS = 200_000
"""Pairs that the vocabulary is learned from."""
AT_ONCE = 2_000
"""Pairs that are encoded at once."""
MANY_PAIRS = 500_000
"""Pairs from which on several processes encode: they take a second to start (docs/log.md)."""

Item = TypeVar("Item")
Report = Callable[[str, int], None]
"""Called with what is being done and how many pairs it has seen."""


@dataclass(frozen=True)
class Preparation:
    """What to prepare, and how. The same preparation is not made twice."""

    corpora: Sequence[Corpus]
    dev: Sequence[Corpus] = ()
    """Held out of the corpora if not given: whole groups of equal sources, so that nothing leaks."""
    vocab_size: int = 8000
    kind: SubwordKind = "bpe"
    shared: bool = True
    """One vocabulary for both sides, or one of `vocab_size` each."""
    protected: Sequence[str] = ()
    """Symbols of the text that are never split."""
    split_marks: bool = True
    """No piece of the vocabulary holds letters and marks at once; false suits text that is tokenised."""
    language_tags: bool = False
    """Each source begins with a tag for its target language, so that one model learns several."""
    variants: float = 0.0
    """Share of the pairs that are written in another form as well (see `data.variants`); above 0, there are slots."""
    vocabularies: Vocabularies | None = None
    """Those of a model to start from; learned from the corpora if not given."""
    rules: CleaningRules = field(default_factory=CleaningRules)
    allow_identical: bool = False
    """For toy tasks such as copying: source and target may be the same text."""

    def __post_init__(self) -> None:
        if not self.corpora:
            raise InputError("there is no corpus to learn from.", remedy="Give two text files.")
        ours = self.vocabularies is not None and self.vocabularies.source.frame is None
        tagged = self.language_tags or (ours and self.languages)
        for corpus in (*self.corpora, *self.dev) if tagged else ():
            if corpus.direction.target is None:
                raise ConfigError(
                    "a language tag is asked for, but this corpus does not say its target language.",
                    where=corpus.name,
                    remedy="Name files by language, as train.de, or give --languages, as en-de.",
                )
            if same_language(corpus.direction.target, self.languages) is not None:
                continue
            if ours:
                raise ConfigError(
                    f"the model to start from has no tag for the language {corpus.direction.target!r}.",
                    where=corpus.name,
                    remedy=f"It writes {', '.join(self.languages)}; another language needs a model of its own.",
                )
            raise ConfigError(
                f"{corpus.direction.target!r} is not a language that is learned.",
                where=corpus.name,
                remedy=nearest(corpus.direction.target, self.languages),
            )

    @property
    def name(self) -> str:
        """The corpora's names, for messages."""
        return ", ".join(corpus.name for corpus in self.corpora)

    @property
    def languages(self) -> list[str]:
        """The target languages that tags tell apart, as they come; none without tags."""
        if self.vocabularies is not None:
            return self.vocabularies.languages
        targets = (corpus.direction.target for corpus in self.corpora if self.language_tags)
        return list(dict.fromkeys(filter(None, targets)))

    def language(self, corpus: Corpus) -> str | None:
        """The language whose tag stands before the sources of a corpus, or before what is to be written of them."""
        target = corpus.direction.target
        if self.vocabularies is None:
            return target if self.language_tags else None
        return None if target is None else same_language(target, self.vocabularies.languages)

    @property
    def normalisation(self) -> Normalisation:
        """The rules for the corpora's languages; where they are not known, those of a model to start from."""
        directions = [corpus.direction for corpus in self.corpora]
        rules = Normalisation.of((each.source for each in directions), (each.target for each in directions))
        given = self.vocabularies.normalisation if self.vocabularies else Normalisation()
        return Normalisation(rules.source or given.source, rules.target or given.target)

    def fingerprint(self) -> str:
        """Changes when the files, their weights or the settings do."""
        settings = {each.name: getattr(self, each.name) for each in fields(self)}
        settings |= {name: [_state(corpus) for corpus in settings[name]] for name in ("corpora", "dev")}
        settings |= {"rules": asdict(self.rules), "normalisation": self.normalisation.name}
        if not self.variants:  # as before there were any
            del settings["variants"]
        if self.split_marks:  # as before there was a choice
            del settings["split_marks"]
        if self.vocabularies is None:
            del settings["vocabularies"]
        else:
            settings["vocabularies"] = [blake2b(each).hexdigest() for each in self.vocabularies.files().values()]
        return json.dumps(settings)


@dataclass(frozen=True)
class Prepared:
    """Corpora as ids, the vocabularies they were encoded with, and the dev set as text."""

    directory: Path
    vocabularies: Vocabularies
    train: Pairs
    dev: Pairs
    dev_sources: list[str]
    dev_references: list[str]
    counts: dict[str, int]
    """Pairs read, kept and dropped, by reason."""


def prepare(
    preparation: Preparation, directory: Path, report: Report = lambda stage, done: None, hands: Hands | None = None
) -> Prepared:
    """Prepare corpora in `directory`, or read what was prepared there before.

    Large corpora are encoded by all `hands` there are, with the same result. A script that asks for several processes
    must be one that can be imported: its work stands under `if __name__ == "__main__"`.
    """
    summary = directory / "prepared.json"
    # Read one pair first, so that a missing or unreadable file is named before anything is written.
    for corpus in (*preparation.corpora, *preparation.dev):
        next(corpus.pairs(allow_identical=True), None)
    fingerprint = preparation.fingerprint()
    if not is_current(summary, fingerprint):
        directory.mkdir(parents=True, exist_ok=True)
        summary.unlink(missing_ok=True)
        counts = _write(preparation, directory, report, hands or Hands())
        contents = json.dumps({"fingerprint": fingerprint, "counts": counts})
        (directory / "prepared.json.part").write_text(contents, encoding="utf-8")
        (directory / "prepared.json.part").replace(summary)
    try:
        given = preparation.vocabularies
        return _read(directory, preparation.shared if given is None else given.shared, preparation.normalisation)
    except FileNotFoundError as error:
        raise InputError(
            f"the prepared data is incomplete: {error.filename} is missing.",
            where=str(directory),
            remedy="Delete the directory; it is made again.",
        ) from error


def prepared_otherwise(preparation: Preparation, directory: Path) -> bool:
    """Whether other text, or text with other settings, was prepared there before."""
    summary = directory / "prepared.json"
    return summary.is_file() and not is_current(summary, preparation.fingerprint())


def _read(directory: Path, shared: bool, normalisation: Normalisation) -> Prepared:
    sources, references = ((directory / f"dev.{side}").read_text(encoding="utf-8") for side in ("source", "target"))
    return Prepared(
        directory,
        Vocabularies.load(directory, shared, normalisation),
        Pairs(directory / "train"),
        Pairs(directory / "dev"),
        sources.split("\n")[:-1],
        references.split("\n")[:-1],
        json.loads((directory / "prepared.json").read_text(encoding="utf-8"))["counts"],
    )


def _write(preparation: Preparation, directory: Path, report: Report, hands: Hands) -> dict[str, int]:
    counts, kept = CleaningCounts(), _Bits()
    sample = _sample(_reported(_cleaned(preparation, counts, kept), "reading", report))
    if not counts.kept:
        raise InputError("no usable pair is left of the corpus.", where=preparation.name, remedy=counts.summary())
    dev = [(corpus, pair) for corpus in preparation.dev for pair in _usable(preparation, corpus)]
    measured = _measured(preparation, [pair for _, pair in dev], counts.kept)
    report("learning the vocabulary", counts.kept)
    learned_from = [(corpus, pair) for corpus, pair in sample if not measured(pair.source)]
    if not learned_from:
        raise _too_few(preparation, counts)
    vocabularies = preparation.vocabularies or Vocabularies.learn(
        [pair for _, pair in learned_from],
        preparation.vocab_size,
        preparation.kind,
        shared=preparation.shared,
        protected=[*preparation.protected, *SLOT_SYMBOLS] if preparation.variants else preparation.protected,
        languages=preparation.languages,
        split_marks=preparation.split_marks,
    )
    for name, contents in vocabularies.files().items():
        (directory / name).write_bytes(contents)

    held_out: list[tuple[Corpus, Pair]] = []

    def blocks(corpus: Corpus, pairs: Iterator[tuple[Corpus, Pair]]) -> Iterator[list[Pair]]:
        """What is trained on of a corpus, with variants, some at a time."""
        variants = _variants(preparation, vocabularies, [pair for of, pair in learned_from if of is corpus])
        while block := [pair for _, pair in islice(pairs, AT_ONCE)]:
            apart = [measured(pair.source) for pair in block]
            held_out.extend((corpus, pair) for pair in compress(block, apart))
            rest = list(compress(block, map(not_, apart)))
            yield [*rest, *variants.of(rest)]

    encoder = Encoder(vocabularies, hands if counts.kept >= MANY_PAIRS or hands.cluster != "none" else None)
    with encoder, PairWriter(directory / "train") as train:
        again = _reported(_kept(preparation, kept), "encoding", report)
        for corpus, group in groupby(again, key=itemgetter(0)):
            for encoded in encoder.blocks(blocks(corpus, group), preparation.language(corpus)):
                train.write_rows(*encoded)
            train.end_corpus(corpus.weight)
    left_out = len(held_out)
    if not preparation.dev:
        dev = held_out
    if not dev or not train.count:
        raise _too_few(preparation, counts)
    with PairWriter(directory / "dev") as writer:
        for corpus, group in groupby(dev, key=itemgetter(0)):
            writer.write_rows(*encoder.encode([pair for _, pair in group], preparation.language(corpus)))
    for side in ("source", "target"):
        lines = (getattr(pair, side) for _, pair in dev)
        (directory / f"dev.{side}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return counts.as_dict() | ({"in_a_dev_set": left_out} if preparation.dev and left_out else {})


def _variants(preparation: Preparation, vocabularies: Vocabularies, pairs: list[Pair]) -> Variants:
    """What makes variants of a corpus's pairs, of which these are a sample; no slots if the vocabulary has none."""
    slots = vocabularies.source.slots and vocabularies.target.slots
    return Variants(preparation.variants, learn_lexicon(pairs) if preparation.variants and slots else None)


def _measured(preparation: Preparation, dev: list[Pair], kept: int) -> Callable[[str], bool]:
    """Whether a source is measured on and must not be trained on, in whichever corpus it stands."""
    if not preparation.dev:
        share = holdout_share(kept)
        return lambda source: is_held_out(source, share)
    # How a corpus and its own dev set overlap is their makers' choice, but another corpus may hold what it holds out.
    sources = {source_key(pair.source) for pair in dev} if len(preparation.corpora) > 1 else set()
    return lambda source: source_key(source) in sources


def _too_few(preparation: Preparation, counts: CleaningCounts) -> InputError:
    return InputError(
        f"{counts.kept} usable pairs are too few to train on some and measure on others.",
        where=preparation.name,
        remedy="Use more text, or give a dev set of your own.",
    )


def _cleaned(preparation: Preparation, counts: CleaningCounts, kept: _Bits) -> Iterator[tuple[Corpus, Pair]]:
    """The usable pairs of all corpora, no pair twice; which they are is marked in `kept`."""
    seen = SeenPairs()
    for corpus in preparation.corpora:
        pairs = _pairs(preparation, corpus)
        for pair in clean(pairs, preparation.rules, counts, seen, preparation.language(corpus) or ""):
            kept.mark(counts.read - 1)
            yield corpus, pair


def _kept(preparation: Preparation, kept: _Bits) -> Iterator[tuple[Corpus, Pair]]:
    """The same pairs once more, without judging them again."""
    pairs = ((corpus, pair) for corpus in preparation.corpora for pair in _pairs(preparation, corpus))
    return (each for number, each in enumerate(pairs) if kept[number])


class _Bits:
    """A bit for each number, not set unless marked."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def mark(self, number: int) -> None:
        missing = number // 8 + 1 - len(self._bytes)
        if missing > 0:
            self._bytes += bytes(missing)
        self._bytes[number // 8] |= 1 << number % 8

    def __getitem__(self, number: int) -> bool:
        return number // 8 < len(self._bytes) and bool(self._bytes[number // 8] >> number % 8 & 1)


def _usable(preparation: Preparation, corpus: Corpus) -> Iterator[Pair]:
    """The pairs of a given dev set, as they are, but for blank ones."""
    return (pair for pair in _pairs(preparation, corpus) if pair.source.strip() and pair.target.strip())


def _pairs(preparation: Preparation, corpus: Corpus) -> Iterator[Pair]:
    """The pairs of a corpus; where letters of their languages are hard to type, with those that are meant."""
    rules = preparation.normalisation
    for pair in corpus.pairs(allow_identical=preparation.allow_identical):
        source = normalise(pair.source, rules.source) if rules.source else pair.source
        target = normalise(pair.target, rules.target) if rules.target else pair.target
        yield Pair(source, target)


def _state(corpus: Corpus) -> list[Any]:
    """What changes when a corpus does: its contents, not where the files lie or how old they are."""
    files = [path for path in (corpus.source, corpus.target) if path]
    return [[file_digest(path) for path in files], corpus.weight, corpus.direction]


def _sample(pairs: Iterable[Item]) -> list[Item]:
    """A uniform sample of a stream of unknown length (reservoir sampling), in the order of the reservoir."""
    generator = random.Random(0)
    kept: list[Item] = []
    for count, pair in enumerate(pairs):
        if count < SAMPLE_PAIRS:
            kept.append(pair)
        elif (place := generator.randrange(count + 1)) < SAMPLE_PAIRS:
            kept[place] = pair
    return kept


def _reported(pairs: Iterable[Item], stage: str, report: Report) -> Iterator[Item]:
    for count, pair in enumerate(pairs):
        if count % AT_ONCE == 0:
            report(stage, count)
        yield pair
