"""Every mistake with the tasks beside translation is one message, exit code 2, and nothing is left half-written."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from transduce.bundle import Bundle
from transduce.cli.main import main
from transduce.text import Tokenizer
from transduce.text.tokenizer import MASK

LINES = [f"{subject} {verb} the {thing}." for subject in ("We", "They", "Kofi and Ama", "Nobody", "You")
         for verb in ("painted", "understand", "repaired") for thing in ("house", "bicycles", "question")]  # fmt: skip

Refused = Callable[..., str]


def run(arguments: tuple[object, ...], monkeypatch: pytest.MonkeyPatch) -> int:
    """What the command line ends with."""
    monkeypatch.setattr(sys, "argv", ["transduce", *map(str, arguments)])
    try:
        main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of every form, and the directory that commands run in."""
    monkeypatch.chdir(tmp_path)
    np.save("images.npy", np.zeros((30, 4, 4), dtype=np.uint8))
    np.save("wide.npy", np.zeros((30, 4, 8), dtype=np.uint8))
    np.save("labels.npy", np.arange(30) % 3)
    np.save("few.npy", np.arange(29) % 3)
    for name, lines in {
        "plain.txt": LINES,
        "labelled.tsv": [f"{line[0]}\t{line}" for line in LINES],
        "tagged.tsv": [f"{line}\t{' '.join(word[0] for word in line.split())}" for line in LINES],
        "wrong.tsv": [*(f"a\t{line}" for line in LINES[:4]), "one column", "a\tb"],
        "wrong-tags.tsv": [*(f"{line}\t{line}" for line in LINES[:2]), "three words here\tA B"],
        "damp.tsv": ["damp\tthe house"],
        "one.tsv": ["a\tb"],
        "empty.txt": [],
    }.items():
        Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return tmp_path


@pytest.fixture
def refused(folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Refused:
    """The message of a command that must fail, on one line; no traceback, no model, no run."""

    def refused(*arguments: object) -> str:
        code = run(arguments, monkeypatch)
        captured = capfd.readouterr()
        assert code == 2, captured.out + captured.err
        assert "Traceback" not in captured.err
        left = {str(path.relative_to(folder)) for path in (folder / "model").rglob("*") if path.is_file()}
        assert not any("prepared" not in name for name in left), left
        return " ".join(captured.err.split())

    return refused


@pytest.fixture(scope="module")
def models(write_model: Callable[..., Bundle]) -> dict[str, Path]:
    """One of each kind, with random weights."""
    tokenizer = Tokenizer.learn(LINES, 320, tags=[MASK])
    plain = Tokenizer.learn(LINES, 320)
    made = {
        "generate": write_model("decoder-only", "language-model", plain, positions="learned", max_length=32),
        "fill": write_model("encoder-only", "masked-language-model", tokenizer),
        "classify": write_model("encoder-only", "classification", plain, ["K", "N"], head="sentence"),
        "tag": write_model("encoder-only", "tagging", plain, ["K", "N"], head="token"),
        "look": write_model("vision", "image-classification", None, ["0", "1"], height=28, width=28, channels=1),
        "translate": write_model("transformer", "translation", plain),
    }
    return {name: bundle.path for name, bundle in made.items()}


def train(task: str, *arguments: object) -> tuple[object, ...]:
    return ("train", "--recipe", task, "-o", "model", "--steps", 1, *arguments)


# Training


@pytest.mark.parametrize(
    ("task", "arguments", "message"),
    [
        ("language-model", ["plain.tx"], "plain.tx: there is no such file. Did you mean 'plain.txt'?"),
        ("language-model", ["plain"], "'plain' is neither a file nor a built-in corpus"),
        ("language-model", ["tiny-shakespear"], "Did you mean 'tiny-shakespeare'?"),
        ("language-model", ["empty.txt"], "empty.txt: there is no text in it"),
        ("language-model", ["banking77"], "banking77 holds labelled texts, which this task does not learn from"),
        ("language-model", ["mnist"], "mnist holds pictures, which this task does not learn from"),
        ("language-model", [], "Missing argument"),
        ("language-model", ["training.warmup=4"], "nothing is given to learn from"),
        ("language-model", ["plain.txt", "--dev-target", "plain.txt"], "has no --dev-target"),
        ("language-model", ["plain.txt", "--weights", "1"], "--weights and --languages are for translation"),
        ("language-model", ["plain.txt", "--prepare-cluster", "ray"], "--prepare-cluster is for translation"),
        ("language-model", ["plain.txt", "network=recurrent"], "language-model is learned otherwise"),
        ("language-model", ["plain.txt", "objective.contxt=3"], "Did you mean 'objective.context'?"),
        ("masked-language-model", ["mnist"], "mnist holds pictures"),
        ("masked-language-model", ["empty.txt"], "empty.txt: there are no lines"),
        ("classification", ["wrong.tsv"], "wrong.tsv:5: this line has not two columns. Write label TAB text"),
        ("classification", ["plain.txt"], "plain.txt:1: this line has not two columns"),
        ("classification", ["one.tsv"], "one.tsv: there is too little text"),
        ("classification", ["tiny-shakespeare"], "tiny-shakespeare holds text, which this task does not learn from"),
        ("classification", ["labelled.tsv", "--dev-source", "damp.tsv"], "'damp' is measured on but nowhere"),
        ("classification", ["labelled.tsv", "--dev-source", "nowhere.tsv"], "nowhere.tsv: there is no such file"),
        ("classification", ["labelled.tsv", "training.metric=bleu"], "metric=bleu is not measured for classification"),
        ("tagging", ["wrong-tags.tsv"], "wrong-tags.tsv:3: 3 words but 2 tags"),
        ("tagging", ["banking77"], "banking77 holds labelled texts, which this task does not learn from"),
        ("image-classification", ["images.npy"], "pictures and their labels are two files"),
        ("image-classification", ["banking77"], "banking77 holds labelled texts"),
        ("image-classification", ["images.npy", "few.npy"], "few.npy: 29 labels for 30 pictures"),
        ("image-classification", ["images.npy", "nowhere.npy"], "nowhere.npy: there is no such file"),
        ("image-classification", ["plain.txt", "labels.npy"], "plain.txt: neither an IDX file of bytes nor a .npy"),
        ("image-classification", ["labels.npy", "labels.npy"], "labels.npy: these are no pictures"),
        ("image-classification", ["images.npy", "labels.npy", "model.patch=3"], "cannot be cut into patches of 3×3"),
        (
            "image-classification",
            ["images.npy", "labels.npy", "--dev-source", "wide.npy", "--dev-target", "labels.npy"],
            "wide.npy: pictures of [4, 8, 1], while those to learn from are [4, 4, 1]",
        ),
        ("image-classification", ["images.npy", "labels.npy", "--dev-source", "images.npy"], "are two files"),
        ("span-corruption", ["mnist"], "mnist holds pictures"),
        ("text-to-text", ["plain.txt"], "plain.txt"),
        ("text-to-text", ["banking77"], "banking77 holds labelled texts, not pairs"),
        ("languagemodel", ["plain.txt"], "there is no recipe 'languagemodel'. Did you mean 'language-model'?"),
    ],
    ids=lambda value: " ".join(map(str, value))[:40] if isinstance(value, list) else None,
)
def test_wrong_training(refused: Refused, task: str, arguments: list[object], message: str) -> None:
    assert message in refused(*train(task, *arguments))


@pytest.mark.parametrize(
    ("task", "files", "start", "message"),
    [
        ("classification", ["labelled.tsv"], "look", "this model reads pictures and has no vocabulary"),
        ("masked-language-model", ["plain.txt"], "classify", "the vocabulary of the model to start from has no <mask>"),
        ("span-corruption", ["plain.txt"], "translate", "the vocabulary of the model to start from has no <span0>"),
        (
            "image-classification",
            ["images.npy", "labels.npy"],
            "generate",
            "nothing of the decoder-only model there fits",
        ),
        ("classification", ["labelled.tsv"], "nowhere", "there is no model here"),
    ],
)
def test_a_model_to_start_from_that_does_not_fit(
    refused: Refused, models: dict[str, Path], task: str, files: list[str], start: str, message: str
) -> None:
    assert message in refused(*train(task, *files, "--from", models.get(start, start)))


def test_a_shape_of_its_own_does_not_fit_a_model_to_start_from(refused: Refused, models: dict[str, Path]) -> None:
    message = refused(*train("classification", "labelled.tsv", "--from", models["fill"], "model.d_model=64"))
    assert "nothing of the encoder-only model there fits" in message
    assert "Leave out settings of model.*" in message


def test_other_text_or_another_task_in_the_same_directory(
    folder: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    tiny = ["model.d_model=16", "model.d_ff=16", "model.heads=2", "model.encoder_layers=1", "tokenizer.vocab_size=320"]

    def command(task: str, file: str) -> tuple[object, ...]:
        return ("train", "--recipe", task, file, "-o", "first", "--steps", 1, *tiny)

    assert run(command("classification", "labelled.tsv"), monkeypatch) == 0, capfd.readouterr()
    capfd.readouterr()
    assert "task: classification before, tagging now" in refused(*command("tagging", "tagged.tsv"))
    Path("labelled.tsv").write_text("a\tother text\n" * 20 + "b\tof another kind\n" * 20)
    assert "begun with other text than labelled.tsv" in refused(*command("classification", "labelled.tsv"))


# Using


@pytest.mark.parametrize(
    ("command", "model", "arguments", "message"),
    [
        ("generate", "generate", ["We", "--tokens", 99], "the model has learned 32 positions"),
        ("generate", "generate", ["We", "--tokens", 0], "0 tokens are to be written"),
        ("generate", "generate", ["We", "--tokens", 3, "--samples", 0], "n_best=0 cannot work"),
        ("generate", "generate", ["We", "--tokens", 3, "--temperature", 0], "temperature=0.0 cannot work"),
        ("generate", "generate", ["We", "--tokens", 3, "--top-p", 2], "top_p=2.0 cannot work"),
        ("generate", "generate", ["We", "--tokens", 3, "--beam", 2, "--seed", 3], "--beam searches and draws nothing"),
        ("generate", "fill", ["We"], "Use: transduce fill"),
        ("generate", "translate", ["We"], "Use: transduce translate"),
        ("generate", "nowhere", ["We"], "there is no model here"),
        ("generate", "To be or not to be, " * 30, [], "there is no model here"),
        ("fill", "fill", ["nothing hidden"], "nothing is masked. Write [MASK]"),
        ("fill", "fill", ["a [MASK]", "--best", 0], "Invalid value"),
        ("fill", "classify", ["a [MASK]"], "Use: transduce classify"),
        ("classify", "classify", ["  "], "there is no text"),
        ("classify", "generate", ["We"], "Use: transduce generate"),
        ("classify", "look", ["mnist:99999"], "mnist has no picture '99999'. They are counted from 0 to 999"),
        ("classify", "look", ["mnist:-1"], "mnist has no picture '-1'"),
        ("classify", "look", ["mnist:x"], "mnist has no picture 'x'"),
        ("classify", "look", ["images.npy"], "pictures have shape [30, 1, 4, 4]"),
        ("classify", "look", ["We painted the house"], "there is no such file"),
        ("classify", "look", ["plain.txt"], "plain.txt: neither an IDX file of bytes nor a .npy file"),
        ("evaluate", "generate", ["nowhere.txt"], "nowhere.txt: there is no such file"),
        ("evaluate", "generate", ["banking77"], "banking77 holds labelled texts"),
        ("evaluate", "fill", ["mnist"], "mnist holds pictures"),
        ("evaluate", "classify", ["damp.tsv"], "'damp' is measured on"),
        ("evaluate", "classify", ["plain.txt"], "plain.txt:1: this line has not two columns"),
        ("evaluate", "tag", ["wrong-tags.tsv"], "wrong-tags.tsv:"),
        ("evaluate", "look", ["images.npy"], "the labels of these pictures are missing"),
        ("evaluate", "look", ["images.npy", "labels.npy"], "label 2 is not one that the model knows"),
        ("evaluate", "look", ["mnist"], "label 9 is not one that the model knows"),
        ("translate", "generate", ["We"], "Use: transduce generate"),
        ("export", "classify", ["--to", "ctranslate2", "-o", "model"], "Use: transduce classify"),
    ],
    ids=lambda value: " ".join(map(str, value))[:40] if isinstance(value, list) else str(value)[:20],
)
def test_wrong_use(
    refused: Refused, models: dict[str, Path], command: str, model: str, arguments: list[object], message: str
) -> None:
    place = ["-m"] if command == "translate" else []
    assert message in refused(command, *place, models.get(model, model), *arguments)


def test_a_text_longer_than_a_file_name_is_a_text(
    models: dict[str, Path], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(("classify", models["classify"], "We painted the house " * 100, "--best", 1), monkeypatch) == 0
    assert capfd.readouterr().out.split()[0] in ("K", "N")


def test_pictures_are_named_by_number_and_by_file(
    folder: Path, models: dict[str, Path], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(("classify", models["look"], "mnist:999", "--json"), monkeypatch) == 0
    assert len(capfd.readouterr().out.splitlines()) == 1
    np.save("two.npy", np.zeros((2, 28, 28), dtype=np.uint8))
    assert run(("classify", models["look"], "two.npy"), monkeypatch) == 0
    assert len(capfd.readouterr().out.splitlines()) == 2
