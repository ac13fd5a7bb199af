"""An exported model translates as ours does, and the report of it says what there is to know."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from tests import commands

from transduce.bundle import Bundle, find_model
from transduce.data.builtin import builtin_corpus
from transduce.decoding import DecodingOptions, Hypothesis
from transduce.engines.ctranslate2_engine import CTranslate2Engine
from transduce.engines.engine import Engine
from transduce.errors import InputError
from transduce.evaluation import quick_bleu
from transduce.interop.ctranslate2 import compile_model
from transduce.interop.export import Export, Format
from transduce.interop.parity import Parity, largest_logit_difference, parity, parity_table
from transduce.translator import Translator

EOS = 2


class Speaker(Engine):
    """An engine that says the texts it was given, one for each sentence."""

    def __init__(self, texts: list[str], score: float) -> None:
        self.ids = Bundle.open(find_model("en-de")).vocabularies().target.encode_batch(texts)
        self.score = score

    def decode(self, sources: Sequence[Sequence[int]], options: DecodingOptions) -> list[list[Hypothesis]]:
        return [[Hypothesis([*ids, EOS], self.score, self.score, [])] for ids in self.ids]


def speaker(texts: list[str], score: float) -> Translator:
    return Translator(Bundle.open(find_model("en-de")), Speaker(texts, score))


@pytest.fixture(scope="module")
def builtin() -> Translator:
    return Translator.load("en-de", engine="torch")


@pytest.fixture(scope="module")
def exported(builtin: Translator, tmp_path_factory: pytest.TempPathFactory) -> Translator:
    """The built-in model, which has really been trained, in float32; it may not ask PyTorch for anything."""
    path = tmp_path_factory.mktemp("exported") / "float32"
    compile_model(builtin.torch_engine.model, builtin.vocabularies, path, "float32")
    return Translator(builtin.bundle, CTranslate2Engine(path, builtin.vocabularies, fallback=no_fallback))


def no_fallback() -> Engine:
    raise AssertionError("decoded with PyTorch")


@pytest.mark.parametrize("options", [{"beam": 1}, {"beam": 4}], ids=str)
def test_a_trained_model_in_float32_translates_as_ours(
    builtin: Translator, exported: Translator, options: dict[str, Any]
) -> None:
    pairs = list(builtin_corpus("tatoeba-en-de", "dev").pairs())[::4][:500]
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    report = parity(builtin, exported, sources, references, **options)
    assert report.sentences == 500
    assert report.share_identical >= 0.99
    assert report.largest_score_difference < 5e-3
    assert report.bleu_difference == pytest.approx(0, abs=0.2)
    assert report.bleu is not None
    assert report.bleu > 25


def test_the_report_counts_what_differs() -> None:
    said, heard = ["Wo ist er?", "Guten Tag.", "Ja, das ist es."], ["Wo ist er?", "Gute Nacht.", "Ja, das ist es."]
    sources = ["Where is he?", "Hello.", "Yes, that is it."]
    report = parity(speaker(said, -1.0), speaker(heard, -1.25), sources, said, other_meanings={"beam": "less"})
    assert (report.sentences, report.identical) == (3, 2)
    assert report.share_identical == pytest.approx(2 / 3)
    assert report.largest_score_difference == 0.25
    assert report.bleu == pytest.approx(100)
    assert report.bleu_difference == pytest.approx(quick_bleu(heard, said) - 100)
    assert [(each.source, each.ours, each.exported) for each in report.differences] == [
        ("Hello.", "Guten Tag.", "Gute Nacht.")
    ]
    shown = report.as_dict()
    assert shown["other_meanings"] == {"beam": "less"}
    assert json.loads(json.dumps(shown))["share_identical"] == report.share_identical


def test_without_references_there_is_no_bleu() -> None:
    report = parity(speaker(["Ja."], -1.0), speaker(["Ja."], -1.0), ["Yes."])
    assert report.bleu is report.exported_bleu is report.bleu_difference is None
    assert len(parity_table(report).rows) == 3
    assert parity_table(Parity(200, 199, 0.001, bleu=30.0, exported_bleu=29.5)).rows[1:] == [
        ["Identical translations", "99.5% (199)"],
        ["Largest difference of their scores", "0.001"],
        ["BLEU, PyTorch → exported", "30.00 → 29.50 (-0.50)"],
    ]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return commands.transduce("export", *arguments)


def test_the_command_compares_on_the_languages_own_corpus(tmp_path: Path) -> None:
    result = run("en-de", "-o", str(tmp_path / "int8"), "--verify-sentences", "40", "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)["parity"]
    assert report["sentences"] == 40
    assert report["share_identical"] >= 0.7  # int8
    assert report["bleu"] > 20
    assert 0.01 < report["largest_logit_difference"] < 10  # int8
    assert "length_penalty" in report["other_meanings"]
    assert json.loads((tmp_path / "int8" / "parity.json").read_text(encoding="utf-8")) == report


def test_the_command_compares_on_text_without_references(tmp_path: Path) -> None:
    text = tmp_path / "mine.en"
    text.write_text("Where is the station?\n\nI am tired.\n", encoding="utf-8")
    result = run("en-de", "-o", str(tmp_path / "plain"), "--float32", "--verify-text", str(text))
    assert result.returncode == 0, result.stderr
    assert "100.0% (2)" in result.stdout
    assert "BLEU" not in result.stdout
    assert json.loads((tmp_path / "plain" / "parity.json").read_text(encoding="utf-8"))["bleu"] is None


def test_the_command_need_not_compare(tmp_path: Path) -> None:
    result = run("en-de", "-o", str(tmp_path / "plain"), "--no-verify")
    assert result.returncode == 0, result.stderr
    assert not (tmp_path / "plain" / "parity.json").exists()
    assert "parity" not in result.stdout.lower()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--verify-text", "nowhere.en"], "neither a file nor a built-in corpus"),
        (["--float32", "--quantization", "int8"], "cannot both be"),
        (["--to", "onnx", "--quantization", "int8"], "float32"),
        (["--to", "onnx", "--shortlist", "tatoeba-en-de"], "only CTranslate2 knows shortlists"),
    ],
)
def test_a_mistake_is_said_before_anything_is_written(tmp_path: Path, arguments: list[str], message: str) -> None:
    result = run("en-de", "-o", str(tmp_path / "plain"), *arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert not (tmp_path / "plain").exists()


def test_the_command_writes_and_compares_graphs(tmp_path: Path) -> None:
    output = tmp_path / "graphs"
    result = run("en-de", "--to", "onnx", "-o", str(output), "--verify-sentences", "30", "--json")
    assert result.returncode == 0, result.stderr
    shown = json.loads(result.stdout)
    assert shown["to"] == "onnx"
    assert shown["parity"]["share_identical"] == 1
    assert shown["parity"]["largest_logit_difference"] < 1e-4
    assert "tokens" in shown["parity"]["other_meanings"]
    assert {file.name for file in output.iterdir()} == {
        "encoder.onnx", "decoder.onnx", "onnx.json", "tokenizer.model", "parity.json"
    }  # fmt: skip


def test_nothing_but_an_export_is_replaced(tmp_path: Path) -> None:
    bundle, output = Bundle.open(find_model("en-de")), tmp_path / "mine"
    output.mkdir()
    (output / "thesis.txt").write_text("years of work", encoding="utf-8")
    for to in get_args(Format):
        with pytest.raises(InputError, match=r"something else than an exported model|one file"):
            Export(bundle, to, output).write()
    assert (output / "thesis.txt").is_file()
    (output / "thesis.txt").unlink()
    Export(bundle, "ctranslate2", output).write()  # an empty one is nobody's
    (output / "model.bin").write_bytes(b"old")
    Export(bundle, "ctranslate2", output).write()
    assert (output / "model.bin").stat().st_size > 1000
    result = run("en-de", "-o", str(output), "--no-verify")
    assert result.returncode == 2
    assert "--force" in result.stderr


def test_logits_are_compared_along_what_the_exported_model_writes() -> None:
    ours = Translator.load("en-de", engine="torch")
    model = ours.torch_engine.model
    written = [7, 9, EOS]

    def logits(sources: Sequence[Sequence[int]], start: Sequence[int]) -> list[tuple[list[int], torch.Tensor]]:
        found = []
        for source in sources:
            with torch.inference_mode():
                exact = model(torch.tensor([[*source, EOS]]), torch.tensor([[1, *written[:-1]]]))[0].clone()
                exact[1, 20] += 0.25
                exact[2, 30] = -3e38  # forbidden, which is no difference of the models
            found.append((written, exact))
        return found

    assert largest_logit_difference(ours, logits, ["Hello.", "Good night!"]) == pytest.approx(0.25, abs=1e-5)
