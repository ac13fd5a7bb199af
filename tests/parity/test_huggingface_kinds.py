"""Models of every task go to `transformers` through the command line, do there what they do here, and come back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from transduce.bundle import Bundle, BundleConfig
from transduce.classifier import Classifier
from transduce.cli.main import main
from transduce.model.family import make_network
from transduce.text import Vocabularies
from transduce.text.tokenizer import MASK, SubwordKind, Tokenizer

LINES = [
    f"{subject} {verb} the {thing}{mark}"
    for subject in ("We", "They", "Kofi and Ama", "Nobody")
    for verb in ("painted", "understand", "will find")
    for thing in ("house", "bicycles", "café", "Straße")
    for mark in (".", "!", ", 12 or 7", " 🙂")
]
TEXTS = [*LINES[::17], "Ɛte sɛn?  你好", "(un)known — “words”", "e\u0301 composed <br> or not<br>"]
SMALL = {"d_model": 16, "d_ff": 24, "heads": 2, "dropout": 0.0}
GPT2 = SMALL | {"norm_position": "pre", "positions": "learned", "activation": "gelu", "max_length": 90}
BERT = SMALL | {
    "encoder_layers": 2,
    "positions": "learned",
    "activation": "gelu",
    "max_length": 60,
    "embedding_norm": True,
}
T5 = SMALL | {
    "encoder_layers": 2, "decoder_layers": 2, "norm": "rms", "norm_position": "pre", "positions": "relative",
    "activation": "geglu", "feedforward_bias": False,
}  # fmt: skip
VIT = SMALL | {
    "encoder_layers": 2, "norm_position": "pre", "positions": "learned", "activation": "gelu", "max_length": 30,
    "labels": 3, "vocab_size": 3, "height": 6, "width": 9, "channels": 1, "patch": 3,
}  # fmt: skip

STEPS = 60
Run = Callable[..., str]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """The command line, in this process: what it said, and with `fails` what it complained of."""

    def run(*arguments: object, fails: bool = False) -> str:
        monkeypatch.setattr("sys.argv", ["transduce", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capfd.readouterr()
        assert (ended.value.code or 0) == (2 if fails else 0), said.err
        return said.err if fails else said.out

    return run


def made(
    path: Path, network: Any, task: Any, settings: dict[str, Any], kind: SubwordKind = "bpe", **described: Any
) -> Bundle:
    """A model directory of ours with weights at random; of what writes, such as have begun to learn."""
    vocabularies = None
    if network != "vision":
        tags = [MASK] if task == "masked-language-model" else []
        documents = task == "language-model"
        tokenizer = Tokenizer.learn(LINES, 420, kind, ["<br>"], tags, documents)
        vocabularies = Vocabularies(tokenizer, tokenizer)
        settings = settings | {"vocab_size": tokenizer.size}
    torch.manual_seed(0)
    model: Any = make_network(network, settings)
    if network == "transformer":
        teach(model, tokenizer)
    else:
        for name, parameter in model.named_parameters():
            nn.init.normal_(parameter, mean=float(name.endswith("norm.weight")), std=0.3)
    config = BundleConfig(architecture=asdict(model.config), network=network, task=task, **described)
    return Bundle.write(path, config, dict(model.named_parameters()), vocabularies, {}, "# Nothing yet\n")


def teach(model: Any, tokenizer: Tokenizer) -> None:
    """Let a model write the last words of a text, so that it writes something and ends."""
    texts = [line.split(" the ") for line in LINES[::3]]
    rows = [[[*tokenizer.encode(" the ".join(text)), 2] for text in texts]]
    rows += [[[1, *tokenizer.encode(text[1]), 2] for text in texts]]
    source, target = (nn.utils.rnn.pad_sequence([torch.tensor(row) for row in side], batch_first=True) for side in rows)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        logits = model(source, target[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=0)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


LABELS = ["bad", "good", "neither"]
OURS: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "language-model": ("GPT2LMHeadModel", "decoder-only", "bpe", GPT2 | {"decoder_layers": 2}),
    "language-model-char": (
        "GPT2LMHeadModel", "decoder-only", "char", GPT2 | {"decoder_layers": 1, "logits_bias": True},
    ),
    "masked-language-model": ("BertForMaskedLM", "encoder-only", "bpe", BERT | {"head_transform": True}),
    "classification": (
        "BertForSequenceClassification", "encoder-only", "unigram",
        BERT | {"head": "sentence", "labels": 3, "pooling": "first"},
    ),
    "tagging": ("BertForTokenClassification", "encoder-only", "bpe", BERT | {"head": "token", "labels": 3}),
    "text-to-text": ("T5ForConditionalGeneration", "transformer", "unigram", T5),
    "image-classification": ("ViTForImageClassification", "vision", "bpe", VIT),
}  # fmt: skip


@pytest.mark.parametrize("name", OURS)
def test_a_model_of_ours_goes_there_and_comes_back(name: str, tmp_path: Path, run: Run) -> None:
    architecture, network, kind, settings = OURS[name]
    task = name.removesuffix("-char")
    labels = {"labels": LABELS} if "labels" in settings else {}
    bundle = made(tmp_path / "ours", network, task, settings, kind, **labels)  # type: ignore[arg-type]
    examples = written(tmp_path, pictures() if network == "vision" else TEXTS)
    said = run(
        "export", bundle.path, "--to", "huggingface", "-o", tmp_path / "theirs", "--verify-text", examples, "--json"
    )
    parity = json.loads(said)["parity"]
    assert parity == json.loads((tmp_path / "theirs" / "parity.json").read_text(encoding="utf-8"))
    assert parity["sentences"] == len(TEXTS)
    assert parity["largest_logit_difference"] < 1e-4
    assert parity["share_identical_ids"] == 1.0
    assert parity["share_identical"] == 1.0
    assert json.loads((tmp_path / "theirs" / "config.json").read_text())["architectures"] == [architecture]
    run("import", tmp_path / "theirs", "--to", tmp_path / "back")
    same_logits(bundle, Bundle.open(tmp_path / "back"))


def pictures() -> Any:
    return np.random.default_rng(0).integers(0, 256, (len(TEXTS), 6, 9, 1), dtype=np.uint8)


def written(folder: Path, examples: Any) -> Path:
    if isinstance(examples, list):
        (folder / "texts.txt").write_text("\n".join(examples), encoding="utf-8")
        return folder / "texts.txt"
    np.save(folder / "pictures.npy", examples)
    return folder / "pictures.npy"


def same_logits(one: Bundle, other: Bundle, texts: Sequence[str] = TEXTS) -> None:
    """Both models give the same pieces the same logits, whatever ids these have."""
    assert one.config.labels == other.config.labels
    models: list[Any] = [one.module(), other.module()]
    if one.config.network == "vision":
        given = torch.randn(3, 1, 6, 9)
        torch.testing.assert_close(models[0](given), models[1](given), rtol=0, atol=1e-4)
        return
    vocabularies = [one.vocabularies(), other.vocabularies()]
    sides = [each.target for each in vocabularies]
    for text in texts:
        if one.config.network == "transformer":
            sources = [[*each.encode_sources([text])[0], 2] for each in vocabularies]
            targets = [[1, *each.start(), *each.target.encode(text)] for each in vocabularies]
            rows = [
                (torch.tensor([source]), torch.tensor([target]))
                for source, target in zip(sources, targets, strict=True)
            ]
        else:
            documents = one.config.task == "language-model"
            encoded = [side.encode_document(text) if documents else side.encode(text) for side in sides]
            rows = [
                (torch.tensor([[1, *row] if documents else [*side.before, *row, 2]]),)
                for side, row in zip(sides, encoded, strict=True)
            ]
        assert sides[0].decode(rows[0][-1][0]) == sides[1].decode(rows[1][-1][0])
        with torch.inference_mode():
            logits = [model(*row)[0] for model, row in zip(models, rows, strict=True)]
        if not one.config.labels:
            places = {name: place for place, name in enumerate(sides[1].all_pieces())}
            common = [(place, places[name]) for place, name in enumerate(sides[0].all_pieces()) if name in places]
            common = [pair for pair in common if pair[0] > 3]  # of which some are there twice, and muted
            assert len(common) > sides[0].size - 12
            ours, theirs = zip(*common, strict=True)
            logits = [logits[0][:, ours], logits[1][:, theirs]]
        torch.testing.assert_close(logits[0], logits[1], rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("network", "task", "settings", "message"),
    [
        (
            "decoder-only", "language-model", GPT2 | {"positions": "rotary", "decoder_layers": 1},
            "GPT-2 models have no positions='rotary'. For GPT-2, train with model.positions=learned.",
        ),
        (
            "encoder-only", "classification", BERT | {"head": "sentence", "labels": 3},
            "BERT models have no pooling='mean'. For BERT, train with model.pooling=first.",
        ),
        (
            "transformer", "text-to-text", T5 | {"logits_bias": True},
            "T5 models have no logits_bias=True. For T5, train with model.logits_bias=false.",
        ),
        ("recurrent", "translation", {"d_model": 8, "hidden": 8}, "no counterpart of this network"),
    ],
)  # fmt: skip
def test_what_has_no_counterpart_is_refused_by_name(
    network: str, task: str, settings: dict[str, Any], message: str, tmp_path: Path, run: Run
) -> None:
    bundle = made(tmp_path / "ours", network, task, settings, labels=LABELS if "labels" in settings else [])
    said = run("export", bundle.path, "--to", "huggingface", "-o", tmp_path / "theirs", fails=True)
    assert message in said
    assert [path.name for path in tmp_path.iterdir()] == ["ours"]


def test_the_report_is_in_plain_words(tmp_path: Path, run: Run) -> None:
    settings = BERT | {"head": "sentence", "labels": 3, "pooling": "first"}
    bundle = made(tmp_path / "ours", "encoder-only", "classification", settings, labels=LABELS)
    said = run("export", bundle.path, "--to", "huggingface", "-o", tmp_path / "theirs", "--verify-sentences", 5)
    for row in (
        r"Texts +5",
        r"Identical token ids +100.0% \(5\)",
        r"Identical classes +100.0% \(5\)",
        "of logits +[0-9e-]+",
    ):
        assert re.search(row, said), said
    card = (tmp_path / "theirs" / "README.md").read_text(encoding="utf-8")
    assert "pipeline_tag: text-classification" in card
    code = card.split("```python\n")[1].split("```")[0].replace('"."', repr(str(tmp_path / "theirs")))
    with redirect_stdout(StringIO()) as printed:
        exec(code.replace("…", LINES[0]))
    assert printed.getvalue().strip() == Classifier(bundle).classify([LINES[0]])[0][0].label


def test_pictures_of_another_size_are_not_compared_with_digits(tmp_path: Path, run: Run) -> None:
    bundle = made(tmp_path / "ours", "vision", "image-classification", VIT, labels=LABELS)
    command = ["export", bundle.path, "--to", "huggingface", "-o", tmp_path / "theirs"]
    np.save(tmp_path / "wrong.npy", np.zeros((2, 5, 5), dtype=np.uint8))
    assert "the model reads [6, 9, 1]" in run(*command, "--verify-text", tmp_path / "wrong.npy", fails=True)
    assert not (tmp_path / "theirs").exists()
    assert "Not verified: no built-in pictures have its size." in run(*command)
    described = json.loads((tmp_path / "theirs" / "preprocessor_config.json").read_text())
    assert described["size"] == {"height": 6, "width": 9}
    run(*command, "--force", "--no-verify")  # what is there is an export, and may be replaced
