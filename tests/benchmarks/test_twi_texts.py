"""What the Twi models learn from holds nothing that they are measured on."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import twi_texts

NAMED = ("english", "dev", "val")


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def bibles(folder: Path) -> Path:
    for variety in ("akuapem", "asante"):
        place = folder / f"bible-en-twi-{variety}"
        place.mkdir(parents=True)
        verses = ["“In the beginning", "word " * (twi_texts.LONGEST_VERSE + 1), "It’s good."]
        for side, texts in (("en", verses), ("twi", ["Mfiase no", "asεm", "Eyε."])):
            with gzip.open(place / f"all.{side}.gz", "wt", encoding="utf-8") as file:
                file.write("".join(f"{text}\n" for text in texts))
    return folder


def test_what_is_measured_on_is_in_nothing_else(tmp_path: Path) -> None:
    twi_texts.pairs(bibles(tmp_path / "bibles"), tmp_path)
    twi_texts.english(tmp_path)
    train, val, dev = ({line.lower() for line in lines(tmp_path / f"{name}.en")} for name in ("train", "val", "dev"))
    assert len(val) == twi_texts.VAL
    assert not train & val
    assert not train & dev
    # Names are changed in what is translated back, so a sentence that differs in names only is the same sentence.
    names = "|".join([*twi_texts.NAMES, *(name for others in twi_texts.NAMES.values() for name in others)])
    nameless = [{re.sub(rf"\b({names})\b", "X", line) for line in lines(tmp_path / f"{name}.en")} for name in NAMED]
    assert nameless[0]
    assert not nameless[0] & (nameless[1] | nameless[2])


def test_long_verses_and_signs_that_nobody_types_are_left_out(tmp_path: Path) -> None:
    twi_texts.pairs(bibles(tmp_path / "bibles"), tmp_path)
    assert lines(tmp_path / "bible-asante.en") == ["In the beginning", "It's good."]
    assert lines(tmp_path / "bible-asante.twi") == ["Mfiase no", "Eyɛ."], "ε is read as ɛ"


def test_translations_that_loop_or_run_on_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("one\ntwo\nthree\nfour\n", encoding="utf-8")
    (tmp_path / "a.twi").write_text("baako\nda da da da da\n\n" + "w " * 31 + "\n", encoding="utf-8")
    twi_texts.sane(tmp_path / "a.en", tmp_path / "a.twi", tmp_path)
    assert [lines(tmp_path / f"back.{side}") for side in ("en", "twi")] == [["one"], ["baako"]]
