"""Every mistake with text files is one message with file and line, exit code 2, and nothing is left half-written."""

from __future__ import annotations

import gzip
import subprocess
from pathlib import Path

import pytest
from tests import commands

ENGLISH = [f"this is sentence number {number} of the corpus" for number in range(400)]
GERMAN = [f"das ist der Satz Nummer {number} aus dem Korpus" for number in range(400)]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    (tmp_path / "train.en").write_text("\n".join(ENGLISH) + "\n", encoding="utf-8")
    (tmp_path / "train.de").write_text("\n".join(GERMAN) + "\n", encoding="utf-8")
    return tmp_path


def transduce(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return commands.transduce(*arguments, cwd=directory)


def refused(directory: Path, *arguments: str) -> str:
    """The message of a command that must fail, on one line; no traceback, no model."""
    result = transduce(directory, *arguments)
    assert result.returncode == 2, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    assert not list(directory.glob("model/*.safetensors"))
    assert not list(directory.glob("model/config.json"))
    return " ".join(result.stderr.split())


def test_unequal_line_counts(corpus: Path) -> None:
    (corpus / "train.de").write_text("\n".join(GERMAN[:397]) + "\n", encoding="utf-8")
    message = refused(corpus, "train", "train.en", "train.de", "-o", "model")
    assert "train.de" in message
    assert "397" in message
    assert "400" in message


def test_invalid_utf8_with_its_line(corpus: Path) -> None:
    lines = [line.encode() for line in GERMAN]
    lines[56] = "Übel".encode("latin1")
    (corpus / "train.de").write_bytes(b"\n".join(lines) + b"\n")
    message = refused(corpus, "train", "train.en", "train.de", "-o", "model")
    assert "train.de:57" in message
    assert "UTF-8" in message


def test_empty_corpus(corpus: Path) -> None:
    (corpus / "train.en").write_text("")
    (corpus / "train.de").write_text("")
    assert "there are no lines" in refused(corpus, "train", "train.en", "train.de", "-o", "model")


def test_source_and_target_mixed_up(corpus: Path) -> None:
    assert "same" in refused(corpus, "train", "train.en", "train.en", "-o", "model")
    (corpus / "copy.de").write_text((corpus / "train.en").read_text())
    assert "same" in refused(corpus, "train", "train.en", "copy.de", "-o", "model")


def test_a_missing_file_with_the_nearest_name(corpus: Path) -> None:
    message = refused(corpus, "train", "train.em", "train.de", "-o", "model")
    assert "train.em" in message
    assert "train.en" in message


def test_an_unknown_built_in_corpus_with_the_nearest_name(corpus: Path) -> None:
    assert "tatoeba-en-de" in refused(corpus, "train", "tatoeba-en-dee", "-o", "model")


def test_truncated_gzip(corpus: Path) -> None:
    whole = gzip.compress("\n".join(ENGLISH).encode())
    (corpus / "train.en.gz").write_bytes(whole[: len(whole) // 2])
    assert "train.en.gz" in refused(corpus, "train", "train.en.gz", "train.de", "-o", "model")


def test_a_tsv_with_a_wrong_column(corpus: Path) -> None:
    rows = [f"{source}\t{target}" for source, target in zip(ENGLISH, GERMAN, strict=True)]
    rows[4] = "only one column"
    (corpus / "train.tsv").write_text("\n".join(rows) + "\n")
    assert "train.tsv:5" in refused(corpus, "train", "train.tsv", "-o", "model")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("training.warm_up=3", "Did you mean 'training.warmup'?"),
        ("model.dmodel=64", "Did you mean 'd_model'?"),
        ("training.batch_tokens=many", "training.batch_tokens='many' cannot work"),
        ("warmup=3", "'warmup' is not a setting. Did you mean 'training.warmup'?"),
        ("tokenizer.vocab_size=10", "tokenizer.vocab_size=10 cannot work"),
        ("training.schedule=cosine", "no number of steps is set. Give --steps"),
    ],
)
def test_a_wrong_setting_with_the_nearest_valid_one(corpus: Path, setting: str, message: str) -> None:
    assert message in refused(corpus, "train", "train.en", "train.de", "-o", "model", setting)


def test_a_wrong_recipe_with_the_nearest_valid_one(corpus: Path) -> None:
    message = refused(corpus, "train", "train.en", "train.de", "-o", "model", "--recipe", "smal-corpus")
    assert "Did you mean 'small-corpus'?" in message


def test_half_a_dev_set(corpus: Path) -> None:
    message = refused(corpus, "train", "train.en", "train.de", "-o", "model", "--dev-source", "train.en")
    assert "--dev-target" in message


def test_too_few_pairs_to_measure_on_any(corpus: Path) -> None:
    for name in ("train.en", "train.de"):
        (corpus / name).write_text((corpus / name).read_text().split("\n")[0] + "\n")
    assert "too few" in refused(corpus, "train", "train.en", "train.de", "-o", "model")


def test_no_model_to_translate_with(corpus: Path) -> None:
    assert "no model here" in refused(corpus, "translate", "-m", "nowhere", "Hello")
    (corpus / "model" / "run").mkdir(parents=True)
    assert "has not finished" in refused(corpus, "translate", "-m", "model", "Hello")


def test_a_changed_recipe_is_refused_with_the_difference(corpus: Path) -> None:
    tiny = ["model.d_model=16", "model.heads=2", "model.encoder_layers=1", "model.decoder_layers=1"]
    first = transduce(corpus, "train", "train.en", "train.de", "-o", "model", "--steps", "2", *tiny)
    assert first.returncode == 0, first.stderr
    again = transduce(
        corpus, "train", "train.en", "train.de", "-o", "model", "--steps", "4", *tiny[1:], "model.d_model=32"
    )
    assert again.returncode == 2
    assert "model.d_model: 16 before, 32 now" in " ".join(again.stderr.split())
    longer = transduce(corpus, "train", "train.en", "train.de", "-o", "model", "--steps", "4", *tiny)
    assert "Going on from step 2" in longer.stdout
    assert "Finished at step 4" in longer.stdout


def test_windows_line_ends_and_byte_order_marks_are_no_mistake(corpus: Path) -> None:
    (corpus / "train.en").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(ENGLISH).encode() + b"\r\n")
    tiny = ["model.d_model=16", "model.heads=2", "model.encoder_layers=1", "model.decoder_layers=1"]
    result = transduce(corpus, "train", "train.en", "train.de", "-o", "model", "--steps", "1", *tiny)
    assert result.returncode == 0, result.stderr
    assert "\r" not in (corpus / "model/run/prepared/dev.source").read_bytes().decode()
