"""Imported models go back to `transformers`, as they came or after more training, and come in once more."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from transduce import Translator
from transduce.bundle import Bundle
from transduce.classifier import Classifier, Filler
from transduce.cli.main import main
from transduce.generator import Generator
from transduce.interop.renumber import Renumbering
from transduce.interop.vocabulary_files import read_vocabulary

SaveTokenizer = Callable[[str, Path], Any]
Run = Callable[..., str]
TEXTS = [
    "We painted the house.",
    "Nobody will find the question, 12 or 7!",
    "They repaired  the bicycles!",
    "Kofi and Ama understand the café in the Straße?",
]
SMALL = {
    "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "max_position_embeddings": 300,
    "dropout": 0.0,
}  # fmt: skip
ENCODER = {
    "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24,
    "initializer_range": 0.3,
}  # fmt: skip
LABELS = {0: "bad", 1: "good", 2: "neither"}
STEPS = 35


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


def writer(kind: str, tokenizer: Any) -> Any:
    """An encoder-decoder of theirs that has begun to learn to write the second half of what it reads, in French."""
    import transformers

    torch.manual_seed(1)
    size = len(tokenizer) + (108 if kind == "m2m" else 3)
    special = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id}
    start = tokenizer.eos_token_id
    forced = None
    if kind in ("m2m", "nllb"):
        model = transformers.M2M100ForConditionalGeneration(transformers.M2M100Config(vocab_size=size, **SMALL))
        forced = tokenizer.convert_tokens_to_ids("__fr__" if kind == "m2m" else "fra_Latn")
    elif kind == "bart":
        model = transformers.BartForConditionalGeneration(transformers.BartConfig(vocab_size=size, **special, **SMALL))
        forced = 0
    elif kind == "t5":
        names = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 1, "num_heads": 2, "decoder_start_token_id": 0}
        model = transformers.T5ForConditionalGeneration(transformers.T5Config(vocab_size=size, **names))
        start = 0
    else:
        model = transformers.MBartForConditionalGeneration(transformers.MBartConfig(vocab_size=size, **SMALL))
        french = tokenizer.convert_tokens_to_ids("fr_XX")
        start, forced = (french, None) if kind == "mbart" else (tokenizer.eos_token_id, french)
    model.config.decoder_start_token_id = model.generation_config.decoder_start_token_id = start
    model.generation_config.forced_bos_token_id = forced
    model.generation_config.num_beams = 1  # with more, theirs counts a language code as a token that is written
    sources = tokenizer(TEXTS, return_tensors="pt", padding=True)
    sources.pop("token_type_ids", None)
    begin = [start] if forced is None else [start, forced]
    halves = [tokenizer(text[len(text) // 2 :], add_special_tokens=False)["input_ids"][:3] for text in TEXTS]
    rows = [torch.tensor([*begin, *row, tokenizer.eos_token_id]) for row in halves]
    target = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-1)
    read, labels = target[:, :-1].clamp(min=tokenizer.pad_token_id), target[:, 1:]
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(STEPS):
        logits = model(**sources, decoder_input_ids=read).logits
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-1).backward()
        optimiser.step()
    return model.eval()


def exported(run: Run, folder: Path, model: Path, *options: object) -> dict[str, Any]:
    """The report of an export to a folder `theirs`."""
    examples = folder / "texts.txt"
    examples.write_text("\n".join(TEXTS), encoding="utf-8")
    said = run(
        "export", model, "--to", "huggingface", "-o", folder / "theirs", "--json", "--verify-text", examples, *options
    )
    report: dict[str, Any] = json.loads(said)["parity"]
    return report


def assert_same(report: dict[str, Any]) -> None:
    assert report["sentences"] == len(TEXTS)
    assert report["share_identical_ids"] == 1.0
    assert report["share_identical"] == 1.0
    assert report["largest_logit_difference"] < 1e-4


@pytest.mark.parametrize("kind", ["m2m", "nllb", "mbart50", "mbart", "bart", "t5"])
def test_what_writes_goes_back(kind: str, tmp_path: Path, save_tokenizer: SaveTokenizer, run: Run) -> None:
    (tmp_path / "made").mkdir()
    tokenizer = save_tokenizer(kind, tmp_path / "made")
    writer(kind, tokenizer).save_pretrained(tmp_path / "made")
    shutil.rmtree(tmp_path / "made" / "made", ignore_errors=True)
    several = [] if kind in ("bart", "t5") else ["--languages", "en-fr"]
    run("import", tmp_path / "made", "--to", tmp_path / "ours", *several)
    assert_same(exported(run, tmp_path, tmp_path / "ours"))
    before, after = (json.loads((tmp_path / name / "config.json").read_text()) for name in ("made", "theirs"))
    assert after["architectures"] == before["architectures"]
    assert {name: after[name] for name in ("vocab_size", "pad_token_id", "eos_token_id")} == {
        name: before[name] for name in ("vocab_size", "pad_token_id", "eos_token_id")
    }  # its own ids
    run("import", tmp_path / "theirs", "--to", tmp_path / "again")  # which now says its languages itself
    ours, again = (Bundle.open(tmp_path / name) for name in ("ours", "again"))
    assert again.config == ours.config
    for name, value in ours.module().named_parameters():
        torch.testing.assert_close(value, again.module().get_parameter(name), rtol=0, atol=1e-5)
    one, other = (Translator(bundle, "torch").translate(TEXTS, guard=False) for bundle in (ours, again))
    assert [each.text for each in one] == [each.text for each in other]
    assert any(each.text for each in one)


def saved_bert(name: str, directory: Path, save_tokenizer: SaveTokenizer) -> None:
    import transformers

    tokenizer = save_tokenizer("bert", directory)
    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=len(tokenizer), **ENCODER, max_position_embeddings=64, id2label=LABELS)
    getattr(transformers, name)(config).save_pretrained(directory)


def saved_gpt2(directory: Path, save_tokenizer: SaveTokenizer) -> None:
    import transformers

    tokenizer = save_tokenizer("gpt2", directory)
    torch.manual_seed(0)
    end = tokenizer.eos_token_id
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer), n_embd=16, n_layer=1, n_head=2, n_positions=96, bos_token_id=end, eos_token_id=end,
        initializer_range=0.3,
    )  # fmt: skip
    transformers.GPT2LMHeadModel(config).save_pretrained(directory)


def made(name: str, directory: Path, save_tokenizer: SaveTokenizer) -> None:
    """A model of theirs that does not translate, with weights at random."""
    import transformers

    directory.mkdir()
    if name.startswith("Bert"):
        saved_bert(name, directory, save_tokenizer)
    elif name.startswith("GPT2"):
        saved_gpt2(directory, save_tokenizer)
    else:
        torch.manual_seed(0)
        config = transformers.ViTConfig(**ENCODER, image_size=8, patch_size=4, id2label=LABELS)
        transformers.ViTForImageClassification(config).save_pretrained(directory)


def answers(bundle: Bundle) -> Any:
    """What a model makes of things."""
    if bundle.config.task == "language-model":
        return [Generator(bundle).generate(text, 12, beam=1).text for text in TEXTS]
    if bundle.config.task == "masked-language-model":
        return [Filler(bundle).filled(text.replace("the", "[MASK]", 1)) for text in TEXTS]
    classifier = Classifier(bundle)
    if bundle.config.task == "tagging":
        return [[(word.word, word.tag) for word in each] for each in classifier.tag(TEXTS)]
    if bundle.config.task == "image-classification":
        return [each[0].label for each in classifier.classify_pictures(pictures())]
    return [each[0].label for each in classifier.classify(TEXTS)]


def pictures() -> Any:
    return np.random.default_rng(0).integers(0, 256, (len(TEXTS), 8, 8, 3), dtype=np.uint8)


KIN = [
    "BertForMaskedLM", "BertForSequenceClassification", "BertForTokenClassification", "GPT2LMHeadModel",
    "ViTForImageClassification",
]  # fmt: skip


@pytest.mark.parametrize("name", KIN)
def test_what_does_not_translate_goes_back(name: str, tmp_path: Path, save_tokenizer: SaveTokenizer, run: Run) -> None:
    made(name, tmp_path / "made", save_tokenizer)
    run("import", tmp_path / "made", "--to", tmp_path / "ours")
    np.save(tmp_path / "pictures.npy", pictures())
    given = ["--verify-text", tmp_path / "pictures.npy"] if name.startswith("ViT") else []
    assert_same(exported(run, tmp_path, tmp_path / "ours", *given))
    assert json.loads((tmp_path / "theirs" / "config.json").read_text())["architectures"] == [name]
    run("import", tmp_path / "theirs", "--to", tmp_path / "again")
    ours, again = (Bundle.open(tmp_path / each) for each in ("ours", "again"))
    assert again.config == ours.config
    assert answers(again) == answers(ours)
    for parameter, value in ours.module().named_parameters():
        torch.testing.assert_close(value, again.module().get_parameter(parameter), rtol=0, atol=1e-5)


SHORT = [
    "--steps",
    "4",
    "training.warmup=1",
    "training.validate_every=2",
    "training.rate=0.01",
    "training.batch_tokens=512",
]


@pytest.mark.parametrize(
    "name", ["BertForSequenceClassification", "BertForMaskedLM", "GPT2LMHeadModel", "ViTForImageClassification"]
)
def test_what_was_trained_further_goes_back(name: str, tmp_path: Path, save_tokenizer: SaveTokenizer, run: Run) -> None:
    made(name, tmp_path / "made", save_tokenizer)
    run("import", tmp_path / "made", "--to", tmp_path / "ours")
    task = Bundle.open(tmp_path / "ours").config.task
    lesson, given = [tmp_path / "lesson.txt"], []
    shorter = [] if task == "image-classification" else ["objective.context=32", "tokenizer.dropout=0"]
    lines = TEXTS * 12
    if task == "classification":
        lines = [f"{LABELS[place % 3]}\t{text}" for place, text in enumerate(lines)]
    (tmp_path / "lesson.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    if task == "image-classification":
        np.save(tmp_path / "pictures.npy", pictures())
        np.save(tmp_path / "many.npy", np.concatenate([pictures()] * 8))
        np.save(tmp_path / "labels.npy", np.arange(32) % 3)
        lesson, given = [tmp_path / "many.npy", tmp_path / "labels.npy"], ["--verify-text", tmp_path / "pictures.npy"]
    run("train", *lesson, "--recipe", task, "--from", tmp_path / "ours", "-o", tmp_path / "trained", *SHORT, *shorter)
    trained = Bundle.open(tmp_path / "trained")
    assert answers(trained) is not None
    state, before = trained.module().state_dict(), Bundle.open(tmp_path / "ours").module().state_dict()
    assert any(not torch.equal(state[name], before[name]) for name in state if ".layers." in f".{name}")
    assert_same(exported(run, tmp_path, tmp_path / "trained", *given))
    assert json.loads((tmp_path / "theirs" / "config.json").read_text())["architectures"] == [name]
    run("import", tmp_path / "theirs", "--to", tmp_path / "again")
    assert answers(Bundle.open(tmp_path / "again")) == answers(trained)


def test_t5_is_read_from_sentencepiece_alone(tmp_path: Path, save_tokenizer: SaveTokenizer) -> None:
    from transformers import T5Tokenizer

    save_tokenizer("t5", tmp_path)
    alone = tmp_path / "made"  # where there is a spiece.model and nothing else
    assert [path.name for path in alone.iterdir()] == ["spiece.model"]
    theirs = T5Tokenizer.from_pretrained(alone)
    vocabulary = read_vocabulary(alone, {"model_type": "t5"})
    assert len(vocabulary.names) == len(theirs)
    numbers = Renumbering.of(
        len(vocabulary.names), pad=vocabulary.pad, start=vocabulary.pad or 0, eos=vocabulary.eos,
        unknown=vocabulary.unknown,
    )  # fmt: skip
    ours, known = vocabulary.vocabularies([numbers], vocabulary.direction(None)), numbers.ours()
    for text in [*TEXTS, "xyzzy 99 % — “quoted”", "你好 Ɛte sɛn 🎉", "ﬁne  ligatures"]:
        (row,) = ours.encode_sources([text])
        assert [*row, 2] == [known[index] for index in theirs(text)["input_ids"]]
        expected = theirs.decode(theirs(text)["input_ids"], skip_special_tokens=True)
        assert ours.target.decode(row) == expected.strip()


def test_letters_of_gpt2_are_all_read(tmp_path: Path, save_tokenizer: SaveTokenizer, run: Run) -> None:
    """One of them has the id that is nobody's padding."""
    made("GPT2LMHeadModel", tmp_path / "made", save_tokenizer)
    run("import", tmp_path / "made", "--to", tmp_path / "ours")
    vocabulary = Bundle.open(tmp_path / "ours").vocabularies().source
    every = "".join(map(chr, range(33, 127)))
    assert vocabulary.decode(vocabulary.encode_document(every)) == every
