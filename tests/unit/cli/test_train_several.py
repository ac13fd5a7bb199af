"""Several corpora, a vocabulary each, tags and protected symbols: from the command line to every use of the model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from safetensors.torch import load_file
from typer.testing import CliRunner, Result

from transduce.bundle import Bundle
from transduce.cli.main import app
from transduce.errors import ConfigError, InputError, TransduceError
from transduce.training.recipe import Recipe
from transduce.translator import Translator

SOURCES = [f"{subject} {verb} the {thing} <br>{mark}"
           for subject in ("We", "They", "Kofi", "Ama") for verb in ("paint", "see", "repair")
           for thing in ("house", "bicycle", "question", "river") for mark in (".", "!", "?")]  # fmt: skip
SETTINGS = [
    "model.encoder_layers=1", "model.decoder_layers=1", "model.d_model=16", "model.d_ff=32", "model.heads=2",
    "model.dropout=0.1", "tokenizer.vocab_size=320", "tokenizer.shared=false", "tokenizer.language_tags=true",
    'tokenizer.protected=["<br>","{name}"]', "tokenizer.dropout=0.1", "training.word_dropout=0.1",
    "training.batch_tokens=400", "training.validate_every=100", "training.checkpoint_every=4",
    "training.cooldown=0",  # which would follow the budget, and so be another one for each part
]  # fmt: skip


def transduce(*arguments: object) -> Result:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    if isinstance(result.exception, TransduceError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


def train(folder: Path, name: str, steps: int) -> None:
    files = [folder / file for file in ("a.en", "a.de", "b.tsv")]
    languages = ["--languages", "en-de,en-fr"]
    transduce("train", *files, "-o", folder / name, "--weights", "1,0.5", *languages, "--steps", steps, *SETTINGS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Corpora, and a model that was trained on them for a moment."""
    folder = tmp_path_factory.mktemp("several")
    targets = [" ".join(reversed(source.split())) for source in SOURCES]
    (folder / "a.en").write_text("".join(f"{line}\n" for line in SOURCES))
    (folder / "a.de").write_text("".join(f"ja {line}\n" for line in targets))
    pairs = zip(SOURCES, targets, strict=True)
    (folder / "b.tsv").write_text("".join(f"{source}\toui {target}\n" for source, target in pairs))
    train(folder, "model", steps=16)
    return folder


def test_the_model_is_described_with_its_languages_and_vocabularies(folder: Path) -> None:
    bundle = Bundle.open(folder / "model")
    assert (bundle.config.source_language, bundle.config.target_language) == ("en", "de")
    assert bundle.config.target_languages == ["de", "fr"]
    vocabularies = bundle.vocabularies()
    assert not vocabularies.shared
    assert {"<br>", "{name}"} <= set(vocabularies.source.all_pieces()) & set(vocabularies.target.all_pieces())
    assert bundle.config.architecture["tying"] == "target"
    assert "en → de, en → fr" in (folder / "model" / "README.md").read_text(encoding="utf-8")
    assert Recipe.load(folder / "model/run/recipe.yaml").tokenizer.protected == ["<br>", "{name}"]


def test_spans_and_weights_are_on_disk(folder: Path) -> None:
    spans = json.loads((folder / "model/run/prepared/train/pairs.json").read_text())["spans"]
    assert [weight for _, _, weight in spans] == [1.0, 0.5]
    assert spans[0][1] == spans[1][0]


def test_a_run_that_was_left_and_gone_on_with_is_bit_for_bit_the_same(folder: Path) -> None:
    """In its second epoch, in which another half of the second corpus is seen."""
    for steps in (5, 11, 16):
        train(folder, "in-parts", steps)
    events = [json.loads(line) for line in (folder / "model/log.jsonl").read_text().splitlines()]
    assert {event["epoch"] for event in events if event["event"] == "Stepped"} == {0, 1}
    ours, theirs = (
        load_file(folder / name / "run/checkpoints/step-16/tensors.safetensors") for name in ("in-parts", "model")
    )
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        assert value.equal(theirs[name]), name


def test_translate_asks_for_a_language(folder: Path) -> None:
    model = folder / "model"
    assert (model / "ctranslate2").is_dir()
    texts = SOURCES[:4]
    for to in ("de", "fr"):
        lines = transduce("translate", "-m", model, "--to", to, *texts).stdout.splitlines()
        assert lines == [each.text for each in Translator.load(model).translate(texts, to)]
    with pytest.raises(ConfigError, match=r"does not translate into 'fe'\. Did you mean 'fr'\?"):
        transduce("translate", "-m", model, "--to", "fe", "We see.")


def test_score_goes_over_whole_files(folder: Path) -> None:
    model, translator = folder / "model", Translator.load(folder / "model")
    targets = (folder / "a.de").read_text().splitlines()
    for to in ("de", "fr"):
        rows = transduce("score", model, folder / "a.en", folder / "a.de", "--to", to, "--json").stdout.splitlines()
        assert len(rows) == len(SOURCES)
        for row, source, target in list(zip(map(json.loads, rows), SOURCES, targets, strict=True))[::24]:
            alone = translator.score(source, target, to)
            assert (row["source"], row["target"]) == (source, target)
            assert row["log_probability"] == pytest.approx(alone.log_probability, abs=1e-3)
            assert row["tokens"] == len(alone.tokens)
            assert row["per_token"] == pytest.approx(row["log_probability"] / row["tokens"])
    plain = transduce("score", model, folder / "a.en", folder / "a.de").stdout.splitlines()
    first = json.loads(transduce("score", model, folder / "a.en", folder / "a.de", "--json").stdout.splitlines()[0])
    assert plain[0] == f"{first['log_probability']:.4f}\t{first['per_token']:.4f}"


def test_evaluate_and_compare_ask_for_a_language(folder: Path) -> None:
    model, files = folder / "model", (folder / "a.en", folder / "a.de")
    report = json.loads(transduce("evaluate", model, *files, "--to", "fr", "--beam", 1, "--json").stdout)
    assert report["sentences"] == len(SOURCES)
    with pytest.raises(ConfigError, match="does not translate into 'xx'"):
        transduce("evaluate", model, *files, "--to", "xx")
    with pytest.raises(ConfigError, match="does not translate into 'xx'"):
        transduce("compare", model, model, *files, "--to", "xx")


def test_export_names_both_vocabularies(folder: Path) -> None:
    shown = transduce("export", folder / "model", "-o", folder / "compiled").stdout
    assert "source.model" in shown
    assert "target.model" in shown
    names = {path.name for path in (folder / "compiled").iterdir()}
    assert {"source_vocabulary.json", "target_vocabulary.json", "model.bin"} <= names


def test_a_tag_needs_a_language(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"b\.tsv: .*does not say its target language.*--languages"):
        transduce("train", folder / "b.tsv", "-o", folder / "none", *SETTINGS)
    assert not (folder / "none").exists()


def test_several_languages_without_tags_are_remarked_upon(folder: Path) -> None:
    files = [folder / name for name in ("a.en", "a.de", "b.tsv")]
    untagged = [each for each in SETTINGS if "language_tags" not in each]
    shown = transduce("train", *files, "-o", folder / "untagged", "--languages", "en-de,en-fr", "--steps", 1, *untagged)
    assert "Several target languages (de, fr): tokenizer.language_tags=true" in " ".join(shown.output.split())
    assert Bundle.open(folder / "untagged").config.target_language is None


def test_a_run_is_not_continued_with_other_text_or_weights(folder: Path) -> None:
    before = {path: path.read_bytes() for path in (folder / "model").rglob("*") if path.is_file()}
    other = [folder / "a.en", folder / "a.de", "-o", folder / "model", "--languages", "en-de", *SETTINGS]
    with pytest.raises(ConfigError, match=r"begun with other text than a\.en \+ a\.de.*another directory with -o"):
        transduce("train", *other, "--steps", 20)
    assert {path: path.read_bytes() for path in (folder / "model").rglob("*") if path.is_file()} == before


def test_evaluate_takes_a_tsv_or_the_name_of_a_built_in_corpus(folder: Path) -> None:
    report = json.loads(transduce("evaluate", folder / "model", folder / "b.tsv", "--beam", 1, "--json").stdout)
    assert report["sentences"] == len(SOURCES)
    counts = [(each["shortest"], each["longest"], each["sentences"]) for each in report["by_length"]]
    assert counts == [(1, 5, len(SOURCES)), (6, 10, 0), (11, 20, 0), (21, None, 0)]
    shown = transduce("evaluate", folder / "model", folder / "b.tsv", "--beam", 1).stdout
    assert shown.index("chrF") < shown.index("Source words") < shown.index("nrefs")
    with pytest.raises(InputError, match=r"neither a file nor a built-in corpus.*tatoeba-en-de"):
        transduce("evaluate", folder / "model", "tatoeba-en-du")
    with pytest.raises(InputError, match=r"a\.en: its translations are missing"):
        transduce("evaluate", folder / "model", folder / "a.en")
