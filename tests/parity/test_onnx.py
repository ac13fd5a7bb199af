"""The exported graphs give our numbers, whatever the model's shape, and the engine over them writes what ours does."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from transduce.bundle import Bundle, find_model
from transduce.data.builtin import builtin_corpus
from transduce.decoding import DecodingOptions
from transduce.engines.onnx_engine import DECODER, DESCRIPTION, OnnxEngine, OnnxModel
from transduce.engines.torch_engine import TorchEngine
from transduce.errors import BundleError, ConfigError
from transduce.interop.onnx import export_onnx
from transduce.model import Transformer
from transduce.model.recurrent import RecurrentConfig, RecurrentTranslator
from transduce.text import Tokenizer, Vocabularies
from transduce.translator import Translator

LINES = [f"{a} {b} {c}" for a in ("red", "green") for b in ("bird", "horse") for c in ("sings", "runs")]
MakeModel = Callable[..., Transformer]


@pytest.fixture(scope="module")
def vocabularies() -> Vocabularies:
    tokenizer = Tokenizer.learn(LINES, 300)
    return Vocabularies(tokenizer, tokenizer)


@pytest.mark.parametrize(
    "overrides",
    [
        {"tying": "all"},
        {"norm_position": "pre", "norm": "rms", "activation": "swiglu", "feedforward_bias": False},
        {"positions": "rotary", "key_value_heads": 2, "attention_bias": True, "activation": "gelu"},
        {"positions": "relative", "activation": "geglu", "decoder_layers": 1},
        {"positions": "alibi", "d_k": 6, "d_v": 10, "heads": 3, "d_model": 18},
        {"positions": "learned", "max_length": 90, "tying": "target", "target_vocab_size": 29, "encoder_layers": 1},
        {"positions": "none", "scale_embeddings": False, "activation": "silu", "encoder_layers": 0},
        {
            "embedding_norm": True,
            "logits_bias": True,
            "activation": "gelu_tanh",
            "decoder_heads": 2,
            "decoder_d_ff": 24,
        },
    ],
    ids=lambda overrides: " ".join(map(str, overrides.values())),
)
def test_logits_are_ours_step_by_step(
    make_model: MakeModel, vocabularies: Vocabularies, tmp_path: Path, overrides: dict[str, Any]
) -> None:
    model = make_model(vocab_size=23, **overrides)
    export_onnx(model, vocabularies, tmp_path / "exported")
    exported = OnnxModel(tmp_path / "exported")
    assert exported.output_size == model.output_size
    assert exported.max_target_length == model.max_target_length
    source_ids = torch.randint(3, 23, (3, 70))  # longer than whatever was traced; padded differently
    source_ids[1, 50:] = 0
    source_ids[2, 1:] = 0
    with torch.inference_mode():
        ours, theirs = model.prefill(source_ids, 80), exported.prefill(source_ids, 80)

        def same(rows: int, new: int) -> None:
            tokens = torch.randint(1, 23, (rows, new))
            expected = model.step(ours, tokens)
            torch.testing.assert_close(exported.step(theirs, tokens), expected, atol=1e-5, rtol=0)

        def reordered(rows: list[list[int]]) -> None:
            model.reorder(ours, torch.tensor(rows))
            exported.reorder(theirs, torch.tensor(rows))

        same(rows=3, new=1)
        reordered([[0, 0], [1, 1], [2, 2]])  # two beams each
        same(rows=6, new=1)
        same(rows=6, new=3)  # several at once, behind what is there
        reordered([[1, 0], [5, 5]])  # the second sentence leaves
        same(rows=4, new=1)
        same(rows=4, new=66)


def test_every_decoding_option_means_the_same(
    make_model: MakeModel, vocabularies: Vocabularies, tmp_path: Path
) -> None:
    model = make_model(vocab_size=vocabularies.source.size, d_model=32)
    with torch.no_grad():
        model.projection.weight *= 3  # not nearly uniform, so that rounding does not decide
    export_onnx(model, vocabularies, tmp_path / "exported")
    ours, theirs = TorchEngine(model), OnnxEngine(tmp_path / "exported")
    sources = vocabularies.source.encode_batch(LINES)
    short = DecodingOptions(max_length_ratio=0, max_length_extra=9)
    for options in (
        short.replace(beam=1),
        short.replace(beam=4, n_best=3, length_penalty="power", alpha=1.0),
        short.replace(sampling=True, n_best=2, top_k=20, temperature=0.8, seed=3),
        short.replace(prefix=[index % 5 * [20] for index in range(len(sources))], no_repeat_ngram=2),
        short.replace(repetition_penalty=1.5, min_length=4, suppress=(40, 41)),
    ):
        for one, other in zip(ours.decode(sources, options), theirs.decode(sources, options), strict=True):
            assert [each.tokens for each in one] == [each.tokens for each in other]
            assert [each.score for each in one] == pytest.approx([each.score for each in other], abs=1e-4)
    targets = vocabularies.target.encode_batch([" ".join(reversed(line.split())) for line in LINES])
    for one, other in zip(ours.score(sources, targets), theirs.score(sources, targets), strict=True):
        assert one.token_scores == pytest.approx(other.token_scores, abs=1e-4)


@pytest.fixture(scope="module")
def exported_en_de(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("onnx") / "en-de"
    translator = Translator.load("en-de", engine="torch")
    export_onnx(translator.torch_engine.model, translator.vocabularies, path)
    return path


@pytest.mark.parametrize("beam", [1, 4])
def test_a_trained_model_translates_as_ours(exported_en_de: Path, beam: int) -> None:
    ours = Translator.load("en-de", engine="torch")
    exported = Translator(ours.bundle, OnnxEngine(exported_en_de))
    sources = [pair.source for pair in builtin_corpus("tatoeba-en-de", "dev").pairs()][::4][:500]
    assert len(sources) == 500
    one, other = ([each.text for each in side.translate(sources, beam=beam)] for side in (ours, exported))
    assert sum(map(str.__eq__, one, other)) >= 0.99 * len(sources)
    assert len(set(one)) > 400  # or it could not tell


def test_the_example_translates_without_us(exported_en_de: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "translate_with_onnxruntime.py"
    command = [sys.executable, str(example), str(exported_en_de), "Where is the station?"]
    said = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert said.returncode == 0, said.stderr
    assert said.stdout.strip() == Translator.load("en-de", "torch").translate("Where is the station?", beam=1).text
    assert "transduce" not in example.read_text(encoding="utf-8").split('"""')[2]


def test_the_engine_is_chosen_by_name(tmp_path: Path, exported_en_de: Path) -> None:
    path = tmp_path / "m"
    shutil.copytree(find_model("en-de"), path)
    with pytest.raises(BundleError, match=r"not compiled for ONNX Runtime.*--to onnx"):
        Translator.load(path, engine="onnx")
    shutil.copytree(exported_en_de, path / "onnx")
    assert isinstance(Translator.load(path, engine="onnx").engine, OnnxEngine)
    with pytest.raises(ConfigError, match="ONNX Runtime knows no shortlist"):
        Translator.load(path, engine="onnx", shortlist=True)
    command = ["translate", "-m", str(path), "--engine", "onnx", "Where is the station?"]
    said = subprocess.run([sys.executable, "-m", "transduce", *command], capture_output=True, text=True, check=False)
    assert (said.returncode, said.stdout) == (0, "Wo ist der Bahnhof?\n"), said.stderr
    bundle = Bundle.open(path)
    weights = {name: value.detach() for name, value in bundle.model().named_parameters()}
    Bundle.write(path, bundle.config, weights, bundle.vocabularies(), {}, "")
    assert not (path / "onnx").exists()  # it was made of other weights


@pytest.mark.parametrize(
    ("name", "contents"),
    [(DECODER, b"no graph"), (DECODER, None), (DESCRIPTION, b"[" * 100_000), (DESCRIPTION, b"{}"), (DESCRIPTION, b"7")],
)
def test_a_damaged_export_is_said_in_words(
    tmp_path: Path, exported_en_de: Path, name: str, contents: bytes | None
) -> None:
    path = tmp_path / "damaged"
    shutil.copytree(exported_en_de, path)
    (path / name).unlink()
    if contents is not None:
        (path / name).write_bytes(contents)
    with pytest.raises(BundleError, match="Export it again"):
        OnnxEngine(path)


def test_what_cannot_be_exported_is_refused(vocabularies: Vocabularies, tmp_path: Path) -> None:
    model: Any = RecurrentTranslator(RecurrentConfig(vocab_size=23, d_model=8))
    with pytest.raises(ConfigError, match="recurrent"):
        export_onnx(model, vocabularies, tmp_path / "exported")
    assert not (tmp_path / "exported").exists()
