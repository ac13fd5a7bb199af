"""Imported translators do what ours do: translate as they did, are measured, adapted, looked into, exported, served."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
import torch
from tests import commands
from transformers import LogitsProcessor, LogitsProcessorList

from transduce import Translator
from transduce.bundle import Bundle
from transduce.decoding import DecodingOptions
from transduce.engines.ctranslate2_engine import CTranslate2Engine
from transduce.errors import BundleError, ConfigError
from transduce.interop.ctranslate2 import compile_model
from transduce.interop.imported import import_huggingface
from transduce.interop.vocabulary_files import read_vocabulary
from transduce.text import normalise
from transduce.text.languages import Direction

TEXTS = ["We painted the house.", "Nobody will find the question, 12 or 7", "They repaired the bicycles!"]
SMALL = {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 600,
    "init_std": 0.5, "forced_eos_token_id": None,
}  # fmt: skip
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def run() -> Run:
    """The command line as a user meets it."""

    def run(*arguments: object, fails: bool = False) -> subprocess.CompletedProcess[str]:
        found = commands.transduce(*arguments)
        assert found.returncode == (2 if fails else 0), found.stderr
        return found

    return run


@pytest.fixture(scope="module")
def imported(run: Run, trained_marian: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("imported") / "en-fr-imported"
    said = run("import", trained_marian.directory, "--to", output)
    assert f"Wrote {output}: a MarianMTModel of Hugging Face's transformers" in said.stdout
    assert f'transduce translate -m {output} "…"' in said.stdout
    return output


def test_it_translates_as_it_did(imported: Path, trained_marian: Any) -> None:
    translator = Translator.load(imported)
    for beam in (1, 4):
        ours = [each.text for each in translator.translate(trained_marian.sources, beam=beam)]
        assert ours == trained_marian.generate(trained_marian.sources, num_beams=beam, max_new_tokens=40)
    assert sum(map(str.__eq__, ours, trained_marian.references)) > 90  # of 100: it has learned something to compare


def test_what_it_says_of_itself_comes_along(imported: Path) -> None:
    config = Bundle.open(imported).config
    assert (config.source_language, config.target_language, config.licence) == ("en", "fr", "apache-2.0")
    assert config.decoding == {"beam": 4, "length_penalty": "power", "alpha": 1.0}
    assert "MarianMTModel" in (imported / "README.md").read_text()


def test_it_is_measured_and_scored(imported: Path, trained_marian: Any, tmp_path: Path, run: Run) -> None:
    files = write(tmp_path, trained_marian.sources, trained_marian.references)
    scores = json.loads(run("evaluate", imported, *files, "--json").stdout)
    assert found(scores, "bleu") > 90
    likely, unlikely = Translator.load(imported).score(["one two three"] * 2, ["un deux trois", "dix dix dix"])
    assert likely.log_probability > unlikely.log_probability + 3


def test_the_lens_looks_into_it(imported: Path) -> None:
    maps = Translator.load(imported).attention("one two three")
    assert maps.source.tokens == ["▁one", "▁two", "▁three", "</s>"]
    assert maps.target.text == "un deux trois"
    assert maps.cross.shape == (1, 4, 4, 4)
    torch.testing.assert_close(torch.from_numpy(maps.cross.sum(-1)), torch.ones(1, 4, 4))


def test_it_is_adapted_to_other_text(imported: Path, tmp_path: Path, run: Run) -> None:
    words = {"one": "dix", "two": "neuf", "three": "huit"}
    lines = [f"{a} {b} {c}" for a in words for b in words for c in words] * 8
    files = write(tmp_path, lines, [" ".join(words[word] for word in line.split()) for line in lines])
    adapted = tmp_path / "adapted"
    settings = ["training.rate=0.005", "training.warmup=10", "training.validate_every=40", "training.average_decay=0.9"]
    run("train", *files, "--from", imported, "-o", adapted, "--steps", "80", "--allow-identical", *settings)
    assert (adapted / "tokenizer.model").read_bytes() == (imported / "tokenizer.model").read_bytes()
    assert Translator.load(adapted).translate("two one three").text == "neuf dix huit"
    assert Translator.load(imported).translate("two one three").text == "deux un trois"


def test_it_is_exported_and_served(imported: Path, trained_marian: Any, tmp_path: Path, run: Run) -> None:
    text = tmp_path / "text.en"
    text.write_text("\n".join(trained_marian.sources), encoding="utf-8")
    compiled = imported / "ctranslate2"
    said = run("export", imported, "-o", compiled, "--float32", "--verify-text", text, "--json")
    parity = json.loads(said.stdout)["parity"]
    assert parity["share_identical"] == 1.0
    assert run("translate", "-m", imported, "three two one").stdout == "trois deux un\n"  # with the compiled one
    with served(imported, tmp_path) as url:
        body = json.dumps({"q": "nine eight", "source": "en", "target": "fr"}).encode()
        request = Request(f"{url}/translate", body, {"content-type": "application/json"})
        with urlopen(request, timeout=60) as answer:
            assert json.load(answer)["translatedText"] == "neuf huit"


def test_it_goes_back_where_it_came_from(imported: Path, trained_marian: Any, tmp_path: Path, run: Run) -> None:
    text = tmp_path / "text.en"
    text.write_text("\n".join(trained_marian.sources[:40]), encoding="utf-8")
    back = tmp_path / "back"
    said = run("export", imported, "--to", "huggingface", "-o", back, "--verify-text", text, "--json")
    parity = json.loads(said.stdout)["parity"]
    assert parity["share_identical"] == 1.0
    assert parity["largest_logit_difference"] < 1e-4
    assert json.loads((back / "config.json").read_text())["architectures"] == ["MarianMTModel"]


@contextmanager
def served(model: Path, folder: Path) -> Iterator[str]:
    """The address of a service with one model, for as long as the block lasts."""
    log = folder / "service.log"
    with log.open("w") as file:
        command = [sys.executable, "-m", "transduce", "serve", str(model), "--port", "0"]
        process = subprocess.Popen(command, stdout=file, stderr=file)
    try:
        while not (ready := re.search(r"Ready: (http://[^/\s]+)", log.read_text(encoding="utf-8"))):
            assert process.poll() is None, log.read_text(encoding="utf-8")
            time.sleep(0.05)
        yield ready.group(1)
    finally:
        process.terminate()
        process.wait(60)


class NeverWritten(LogitsProcessor):  # type: ignore[misc]
    """What our search never writes, told to theirs; what it is forced to begin with is let through."""

    def __init__(self, ids: list[int], start: int) -> None:
        self.ids, self.start = ids, start

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        if input_ids.shape[1] > self.start:
            scores[:, self.ids] = -torch.inf
        return scores


def random_model(kind: str, directory: Path, tokenizer: Any) -> tuple[Any, dict[str, Any]]:
    """A model of theirs with weights at random, saved, and how theirs is asked to write French."""
    import transformers

    torch.manual_seed(1)
    size = len(tokenizer) + (108 if kind == "m2m" else 3)
    special = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id}
    options: dict[str, Any] = {}
    if kind.startswith("marian"):
        size = len(tokenizer)
        start = {"decoder_start_token_id": tokenizer.pad_token_id, "decoder_vocab_size": size}
        config = transformers.MarianConfig(vocab_size=size, **special, **start, **SMALL)
        model = transformers.MarianMTModel(config)
    elif kind in ("m2m", "nllb"):
        model = transformers.M2M100ForConditionalGeneration(transformers.M2M100Config(vocab_size=size, **SMALL))
        options = {"forced_bos_token_id": tokenizer.convert_tokens_to_ids("__fr__" if kind == "m2m" else "fra_Latn")}
    elif kind == "bart":
        model = transformers.BartForConditionalGeneration(transformers.BartConfig(vocab_size=size, **special, **SMALL))
        options = {"forced_bos_token_id": 0}
        model.generation_config.forced_bos_token_id = 0
    elif kind == "t5":
        names = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0}
        model = transformers.T5ForConditionalGeneration(transformers.T5Config(vocab_size=size, **names))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(2)
    else:
        model = transformers.MBartForConditionalGeneration(transformers.MBartConfig(vocab_size=size, **SMALL))
        french = tokenizer.convert_tokens_to_ids("fr_XX")
        options = {"decoder_start_token_id": french}
        if kind == "mbart50":
            options = {"forced_bos_token_id": french, "decoder_start_token_id": tokenizer.eos_token_id}
    with torch.no_grad():
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.normal_()
    model.eval().save_pretrained(directory)
    return model, options


@pytest.mark.parametrize("kind", ["marian", "marian_to_several", "m2m", "nllb", "mbart50", "mbart", "bart", "t5"])
def test_every_kind_writes_what_it_wrote(kind: str, tmp_path: Path, save_tokenizer: Callable[[str, Path], Any]) -> None:
    tokenizer = save_tokenizer(kind, tmp_path)
    model, options = random_model(kind, tmp_path, tokenizer)
    several = kind in ("m2m", "nllb", "mbart50", "mbart", "marian_to_several")
    direction = Direction("en", "fra" if kind == "marian_to_several" else "fr") if several else None
    found = import_huggingface(tmp_path, tmp_path / "ours", direction)
    translator = Translator(found.bundle, "torch")

    never = sorted(unwritten(tmp_path, tokenizer))
    asked = [f">>fra<< {text}" for text in TEXTS] if kind == "marian_to_several" else TEXTS
    batch = tokenizer(asked, return_tensors="pt", padding=True)
    batch.pop("token_type_ids", None)
    started = 1 + ("forced_bos_token_id" in options)
    rows = model.generate(
        **batch,
        num_beams=1,
        do_sample=False,
        max_new_tokens=11 + started,
        logits_processor=LogitsProcessorList([NeverWritten(never, started - 1)]),
        **options,
    )
    expected = [tokenizer.decode(row, skip_special_tokens=True).strip() for row in rows]
    if kind == "m2m":  # of which it does not know that they are no text
        expected = [text.removeprefix("__fr__").strip() for text in expected]
    ours = translator.translate(TEXTS, guard=False, beam=1, max_length_ratio=0.0, max_length_extra=13)
    assert [each.text for each in ours] == [normalise(text) for text in expected]


def unwritten(directory: Path, tokenizer: Any) -> set[int]:
    """Their ids of what ours never writes."""
    config = json.loads((directory / "config.json").read_text())
    vocabulary = read_vocabulary(directory, config).widened(config["vocab_size"])
    return set(vocabulary.special) - {tokenizer.eos_token_id}


def test_a_model_of_many_languages_asks_for_one(tmp_path: Path, save_tokenizer: Callable[[str, Path], Any]) -> None:
    tokenizer = save_tokenizer("nllb", tmp_path)
    random_model("nllb", tmp_path, tokenizer)
    with pytest.raises(ConfigError, match="not 'klingon'"):
        import_huggingface(tmp_path, tmp_path / "ours", Direction("en", "klingon"))
    assert not (tmp_path / "ours").exists()
    import_huggingface(tmp_path, tmp_path / "ours", Direction("en", "twi"))
    translator = Translator.load(tmp_path / "ours")
    assert translator.bundle.config.target_languages[0] == "twi_Latn"
    assert translator.vocabularies.target.pieces(translator.vocabularies.start("fra_Latn")) == ["fra_Latn"]
    one, other = (translator.translate(TEXTS[0], to, guard=False).text for to in ("twi", "fr"))
    assert one != other
    compile_model(translator.bundle.model(), translator.vocabularies, tmp_path / "ctranslate2", "float32")
    compiled = CTranslate2Engine(tmp_path / "ctranslate2", translator.vocabularies, lambda: translator.torch_engine)
    sources = translator.vocabularies.encode_sources(TEXTS, "twi_Latn")
    start, never = translator.vocabularies.start("twi_Latn"), translator.vocabularies.target.unwritten
    options = DecodingOptions(beam=1, start=start, suppress=never, max_length_extra=8, approximate=True)
    for one, same in zip(*(e.decode(sources, options) for e in (compiled, translator.torch_engine)), strict=True):
        assert one[0].tokens == same[0].tokens


def test_what_is_there_is_not_overwritten(imported: Path, trained_marian: Any, run: Run) -> None:
    said = run("import", trained_marian.directory, "--to", imported, fails=True)
    assert "something is there already" in said.stderr
    assert "--force" in said.stderr
    with pytest.raises(BundleError):
        import_huggingface(imported, imported.parent / "again")


def write(folder: Path, sources: list[str], targets: list[str]) -> list[Path]:
    files = [folder / "text.en", folder / "text.fr"]
    for path, lines in zip(files, (sources, targets), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return files


def found(scores: Any, name: str) -> float:
    """A score wherever it stands."""
    if isinstance(scores, dict):
        if name in scores and isinstance(scores[name], int | float):
            return float(scores[name])
        scores = list(scores.values())
    if isinstance(scores, list):
        return max((found(each, name) for each in scores), default=-1.0)
    return -1.0
