"""A corpus is prepared once, whole or not at all, and nothing of it leaks into the dev set."""

from __future__ import annotations

import gzip
import multiprocessing
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from transduce.data import prepare as module
from transduce.data.clean import CleaningRules
from transduce.data.corpus import Corpus
from transduce.data.encoding import Hands
from transduce.data.prepare import Preparation, Prepared, prepare
from transduce.data.shards import Pairs
from transduce.errors import InputError, StorageError
from transduce.text import Normalisation

SOURCES = [f"{subject} {verb} the {thing}{mark}"
           for subject in ("We", "They", "Kofi", "Ama", "Nobody") for verb in ("paint", "see", "repair", "find")
           for thing in ("house", "bicycle", "question", "river") for mark in (".", "!", "?")]  # fmt: skip
TARGETS = [" ".join(reversed(source.split())) for source in SOURCES]
DEV_SOURCES = ["We see Ama.", "  We see  Ama.", "We see Ama.", "A river!"]
DEV_TARGETS = ["Ama. see We", "Ama see We.", "Ama. see We", "river! A "]

Write = Callable[..., Corpus]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes two files and gives them as a corpus."""

    def write(
        name: str = "train",
        sources: list[str] = SOURCES,
        targets: list[str] = TARGETS,
        pack: Callable[[bytes], bytes] = bytes,
    ) -> Corpus:
        paths = tmp_path / f"{name}.en", tmp_path / f"{name}.xx"
        for path, lines in zip(paths, (sources, targets), strict=True):
            path.write_bytes(pack("".join(f"{line}\n" for line in lines).encode()))
        return Corpus(*paths)

    return write


def preparation(*corpora: Corpus, **settings: Any) -> Preparation:
    return Preparation(corpora, **{"vocab_size": 320, **settings})


def stages(what: Preparation, directory: Path) -> list[str]:
    """What had to be done: nothing where everything was there."""
    done: list[str] = []
    prepare(what, directory, lambda stage, count: done.append(stage))
    return done


def texts(prepared: Prepared, pairs: Pairs, side: str) -> list[str]:
    tokenizer = getattr(prepared.vocabularies, side)
    return [tokenizer.decode(pairs.ids(side, index).tolist()) for index in range(len(pairs))]


def everything(prepared: Prepared) -> list[Any]:
    sides = [texts(prepared, pairs, side) for pairs in (prepared.train, prepared.dev) for side in ("source", "target")]
    return [prepared.vocabularies.files(), prepared.counts, prepared.dev_sources, prepared.dev_references, *sides]


def key(text: str) -> str:
    return " ".join(text.casefold().split())


def test_what_is_prepared_is_not_written_again(write: Write, tmp_path: Path) -> None:
    def states() -> dict[Path, tuple[int, int]]:
        files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
        return {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in files}

    first = prepare(preparation(write()), tmp_path / "out")
    before = states()
    second = prepare(preparation(Corpus(tmp_path / "train.en", tmp_path / "train.xx")), tmp_path / "out")
    assert before
    assert states() == before
    assert everything(second) == everything(first)
    assert stages(preparation(Corpus(tmp_path / "train.en", tmp_path / "train.xx")), tmp_path / "out") == []


@pytest.mark.parametrize(
    "change",
    [
        {"vocab_size": 310},
        {"kind": "unigram"},
        {"shared": False},
        {"protected": ["Kofi"]},
        {"split_marks": False},
        {"language_tags": True},
        {"rules": CleaningRules(max_words=4)},
        {"allow_identical": True},
    ],
)
def test_another_setting_is_prepared_anew(write: Write, tmp_path: Path, change: dict[str, Any]) -> None:
    before = preparation(write())
    prepare(before, tmp_path / "out")
    assert stages(replace(before, **change), tmp_path / "out") != []
    assert stages(replace(before, **change), tmp_path / "out") == []


@pytest.mark.parametrize("name", ["train.en", "train.xx", "dev.en", "dev.xx"])
def test_a_changed_file_is_prepared_anew(write: Write, tmp_path: Path, name: str) -> None:
    what = preparation(write(), dev=[write("dev", DEV_SOURCES, DEV_TARGETS)])
    prepare(what, tmp_path / "out")
    path = tmp_path / name
    time = path.stat().st_mtime_ns
    path.write_text(path.read_text().replace("river", "ocean"))  # as long as before
    os.utime(path, ns=(time, time))  # and as old
    assert stages(what, tmp_path / "out") != []
    read = everything(prepare(what, tmp_path / "out"))
    assert any("ocean" in line for lines in read if isinstance(lines, list) for line in lines)


def test_a_file_that_was_moved_or_touched_is_not(write: Write, tmp_path: Path) -> None:
    corpus = write()
    prepare(preparation(corpus), tmp_path / "out")
    os.utime(corpus.source, ns=(1, 1))
    assert corpus.target is not None
    moved = replace(corpus, target=corpus.target.rename(tmp_path / "elsewhere.xx"), languages=corpus.direction)
    assert stages(preparation(moved), tmp_path / "out") == []


def test_a_dev_set_given_later_is_prepared_anew(write: Write, tmp_path: Path) -> None:
    prepare(preparation(write()), tmp_path / "out")
    prepared = prepare(preparation(write(), dev=[write("dev", DEV_SOURCES, DEV_TARGETS)]), tmp_path / "out")
    assert prepared.dev_sources == DEV_SOURCES


@pytest.mark.parametrize(
    ("stage", "count"),
    [("reading", 0), ("reading", 100), ("learning the vocabulary", 240), ("encoding", 0), ("encoding", 150)],
)
@pytest.mark.parametrize("earlier", [False, True], ids=["new", "over an earlier one"])
def test_what_was_killed_half_way_is_not_taken_for_complete(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str, count: int, earlier: bool
) -> None:
    class Killed(BaseException):
        pass

    def kill(now: str, done: int) -> None:
        if (now, done) == (stage, count):
            raise Killed

    monkeypatch.setattr(module, "AT_ONCE", 50)
    wanted, other = preparation(write()), preparation(write(), vocab_size=310)
    if earlier:
        prepare(wanted, tmp_path / "out")
    with pytest.raises(Killed):
        prepare(other, tmp_path / "out", kill)
    undisturbed = everything(prepare(wanted, tmp_path / "undisturbed"))
    assert stages(wanted, tmp_path / "out") != []
    assert everything(prepare(wanted, tmp_path / "out")) == undisturbed


def test_ids_that_were_not_all_written_cannot_be_read(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(stage: str, done: int) -> None:
        if (stage, done) == ("encoding", 150):
            raise KeyboardInterrupt

    monkeypatch.setattr(module, "AT_ONCE", 50)
    with pytest.raises(KeyboardInterrupt):
        prepare(preparation(write()), tmp_path / "out", kill)
    with pytest.raises(InputError, match="missing or incomplete"):
        Pairs(tmp_path / "out" / "train")


def test_the_held_out_dev_set_shares_no_source_with_train(write: Write, tmp_path: Path) -> None:
    variants = [source.upper() for source in SOURCES] + [f"  {source}" for source in SOURCES] + SOURCES
    corpus = write(sources=variants, targets=[*TARGETS, *(f"{target} a" for target in TARGETS), *TARGETS])
    prepared = prepare(preparation(corpus), tmp_path / "out")
    train = {key(text) for text in texts(prepared, prepared.train, "source")}
    dev = {key(text) for text in prepared.dev_sources}
    assert train
    assert dev
    assert not train & dev
    assert train | dev == {key(source) for source in SOURCES}


def test_dev_texts_and_dev_ids_belong_together(write: Write, tmp_path: Path) -> None:
    prepared = prepare(preparation(write()), tmp_path / "out")
    assert len(prepared.dev) == len(prepared.dev_sources) == len(prepared.dev_references)
    assert texts(prepared, prepared.dev, "source") == prepared.dev_sources
    assert texts(prepared, prepared.dev, "target") == prepared.dev_references
    together = dict(zip(SOURCES, TARGETS, strict=True))
    assert [together[source] for source in prepared.dev_sources] == prepared.dev_references


def test_a_given_dev_set_is_used_as_it_is_and_all_else_is_trained_on(write: Write, tmp_path: Path) -> None:
    prepared = prepare(preparation(write(), dev=[write("dev", DEV_SOURCES, DEV_TARGETS)]), tmp_path / "out")
    assert prepared.dev_sources == DEV_SOURCES
    assert prepared.dev_references == DEV_TARGETS
    assert len(prepared.dev) == 4
    assert texts(prepared, prepared.train, "source") == SOURCES
    assert texts(prepared, prepared.train, "target") == TARGETS


def test_counts_say_what_was_read_kept_and_dropped(write: Write, tmp_path: Path) -> None:
    corpus = write(
        sources=[*SOURCES, "", "a", *SOURCES[:3], "b " * 300], targets=[*TARGETS, "a", " ", *TARGETS[:3], "b"]
    )
    counts = prepare(preparation(corpus), tmp_path / "out").counts
    assert counts == {"read": 246, "kept": 240, "empty": 2, "too_long": 1, "ratio": 0, "duplicate": 3}
    assert prepare(preparation(corpus), tmp_path / "out").counts == counts  # also when read back


def test_all_kept_pairs_are_in_train_or_dev(write: Write, tmp_path: Path) -> None:
    prepared = prepare(preparation(write()), tmp_path / "out")
    assert len(prepared.train) + len(prepared.dev) == prepared.counts["kept"] == 240
    assert 10 <= len(prepared.dev) <= 40  # a tenth is wanted


def test_ids_decode_to_the_normalised_text(write: Write, tmp_path: Path) -> None:
    odd = ["e\u0301te\u0301", " two \u00a0 spaces\t", "未知 👍🏽", "ɛno"]
    plain = ["été", "two spaces", "未知 👍🏽", "ɛno"]
    corpus = write(sources=[*SOURCES, *odd], targets=[*TARGETS, *reversed(odd)])
    dev = write("dev", DEV_SOURCES, DEV_TARGETS)
    prepared = prepare(preparation(corpus, dev=[dev]), tmp_path / "out")
    assert texts(prepared, prepared.train, "source")[-4:] == plain
    assert texts(prepared, prepared.train, "target")[-4:] == plain[::-1]
    assert texts(prepared, prepared.dev, "source")[1] == "We see Ama."


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_the_vocabulary_is_of_the_size_and_kind_asked_for(write: Write, tmp_path: Path, kind: str) -> None:
    prepared = prepare(preparation(write(), vocab_size=300, kind=kind), tmp_path / "out")
    assert prepared.vocabularies.source.size == 300


def test_packed_files_give_the_same_as_plain_ones(write: Write, tmp_path: Path) -> None:
    plain = prepare(preparation(write()), tmp_path / "plain")
    packed = prepare(preparation(write("packed.gz", pack=gzip.compress)), tmp_path / "packed")
    assert everything(packed) == everything(plain)


def test_a_corpus_of_one_file_with_two_columns(write: Write, tmp_path: Path) -> None:
    (tmp_path / "both.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in zip(SOURCES, TARGETS, strict=True)))
    columns = prepare(preparation(Corpus(tmp_path / "both.tsv")), tmp_path / "columns")
    assert everything(columns) == everything(prepare(preparation(write()), tmp_path / "sides"))


def test_a_copying_task_is_prepared_if_allowed(write: Write, tmp_path: Path) -> None:
    corpus = write(targets=SOURCES)
    with pytest.raises(InputError, match="the same text"):
        prepare(preparation(corpus), tmp_path / "out")
    assert prepare(preparation(corpus, allow_identical=True), tmp_path / "out").counts["kept"] == 240


def test_a_corpus_with_nothing_usable_is_named(write: Write, tmp_path: Path) -> None:
    corpus = write("hollow", sources=["", "a", " "], targets=["a", "", " "])
    with pytest.raises(InputError, match=r"^hollow\.en \+ hollow\.xx: no usable pair.*dropped 3 empty\.$"):
        prepare(preparation(corpus), tmp_path / "out")


def test_a_corpus_too_small_to_hold_anything_out_is_named(write: Write, tmp_path: Path) -> None:
    corpus = write("one", sources=["Hello there."], targets=["Hallo du."])
    with pytest.raises(InputError, match=r"^one\.en \+ one\.xx: 1 usable pairs? .*dev set of your own"):
        prepare(preparation(corpus), tmp_path / "out")
    assert (
        prepare(preparation(corpus, dev=[write("dev", DEV_SOURCES, DEV_TARGETS)]), tmp_path / "out").counts["kept"] == 1
    )


@pytest.mark.parametrize("name", ["train.en", "train.xx", "dev.en", "dev.xx"])
def test_a_missing_file_is_named_before_anything_is_written(write: Write, tmp_path: Path, name: str) -> None:
    what = preparation(write(), dev=[write("dev", DEV_SOURCES, DEV_TARGETS)])
    (tmp_path / name).unlink()
    with pytest.raises(InputError, match="there is no such file") as caught:
        prepare(what, tmp_path / "out")
    assert caught.value.where == str(tmp_path / name)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("damage", ["", "[]", "{}", "null", '{"fingerprint"'])
def test_a_damaged_summary_is_made_again(write: Write, tmp_path: Path, damage: str) -> None:
    what = preparation(write())
    before = everything(prepare(what, tmp_path / "out"))
    (tmp_path / "out" / "prepared.json").write_text(damage)
    assert everything(prepare(what, tmp_path / "out")) == before


@pytest.mark.parametrize("name", ["tokenizer.model", "dev.source", "dev.target", "train/source.ids", "dev/target.ends"])
def test_a_file_lost_from_what_was_prepared_is_made_again_or_named(write: Write, tmp_path: Path, name: str) -> None:
    what = preparation(write())
    before = everything(prepare(what, tmp_path / "out"))
    (tmp_path / "out" / name).unlink()
    try:
        found: Any = everything(prepare(what, tmp_path / "out"))
    except InputError as error:
        found = str(error)
    assert found == before or str(tmp_path / "out") in found


def test_progress_is_reported_by_stage(write: Write, tmp_path: Path) -> None:
    assert stages(preparation(write()), tmp_path / "out") == ["reading", "learning the vocabulary", "encoding"]


def test_letters_that_are_hard_to_type_are_learned_as_they_are_meant(tmp_path: Path) -> None:
    typed = [f"{'ε' if place % 3 else 'ɛ'}nnɛ {target} wͻ" for place, target in enumerate(TARGETS)]
    for name, lines in (("a.en", [f"ε {source}" for source in SOURCES]), ("a.twi", typed)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    english, twi = tmp_path / "a.en", tmp_path / "a.twi"
    prepared = prepare(preparation(Corpus(english, twi)), tmp_path / "there")
    assert prepared.vocabularies.normalisation.name == "nfc-1+target:ɔɛ"
    for written in (prepared.dev_references, texts(prepared, prepared.train, "target")):
        assert all(text.startswith("ɛnnɛ ") and text.endswith(" wɔ") for text in written)
    assert all(text.startswith("ε ") for text in prepared.dev_sources)  # in English it is what it is
    back = prepare(preparation(Corpus(twi, english)), tmp_path / "back")
    assert back.vocabularies.normalisation.name == "nfc-1+source:ɔɛ"
    assert all(text.startswith("ɛnnɛ ") for text in back.dev_sources)


def test_texts_of_unknown_language_follow_the_rules_of_the_model_that_is_started_from(tmp_path: Path) -> None:
    for name, lines in (("a.txt", SOURCES), ("b.txt", [f"ε {target}" for target in TARGETS])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    corpus = Corpus(tmp_path / "a.txt", tmp_path / "b.txt")
    first = prepare(preparation(corpus), tmp_path / "first")
    assert first.vocabularies.normalisation.name == "nfc-1"
    assert all(text.startswith("ε ") for text in first.dev_references)
    vocabularies = first.vocabularies.with_rules(Normalisation.of(["en"], ["twi"]))
    second = prepare(preparation(corpus, vocabularies=vocabularies), tmp_path / "second")
    assert second.vocabularies.normalisation.name == "nfc-1+target:ɔɛ"
    assert all(text.startswith("ɛ ") for text in second.dev_references)


@pytest.mark.parametrize("settings", [{}, {"variants": 0.5, "shared": False}])
def test_several_processes_write_the_same_bytes_as_one(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 7)
    corpora = [write(), write("more", [f"{source} Again." for source in SOURCES])]
    prepare(preparation(*corpora, **settings), tmp_path / "one", hands=Hands(3))  # too few pairs for that
    monkeypatch.setattr(module, "MANY_PAIRS", 1)
    prepare(preparation(*corpora, **settings), tmp_path / "three", hands=Hands(3))
    names = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file())
    assert len(names) >= 13
    for name in names:
        assert (tmp_path / "three" / name).read_bytes() == (tmp_path / "one" / name).read_bytes(), name


def test_a_process_that_is_killed_is_said_and_nothing_half_prepared_is_taken_for_whole(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 7)
    monkeypatch.setattr(module, "MANY_PAIRS", 1)

    def kill(stage: str, done: int) -> None:
        if stage == "encoding" and done > 100:
            for process in multiprocessing.active_children():
                process.kill()

    directory, wanted = tmp_path / "prepared", preparation(write())
    with pytest.raises(StorageError, match="a process that encodes text has ended"):
        prepare(wanted, directory, kill, hands=Hands(2))
    assert not (directory / "prepared.json").exists()
    assert len(prepare(wanted, directory).train) > 200
