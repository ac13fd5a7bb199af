"""A package for Argos Translate: what is in it, and that it translates as ours does, called as Argos calls it.

That the real Argos installs it and says the same is tested by test_real_argos.py, in an environment of its own.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import asdict
from pathlib import Path

import ctranslate2
import pytest
import sentencepiece
import torch

from transduce.bundle import Bundle, BundleConfig, find_model
from transduce.data.builtin import builtin_corpus
from transduce.errors import ConfigError, InputError
from transduce.interop.argos import ARGOS_OPTIONS, ArgosPackage, write_argos
from transduce.interop.argos_sentences import SentenceEnds, characters
from transduce.interop.export import Export
from transduce.model import Transformer, TransformerConfig
from transduce.text import Vocabularies
from transduce.text.languages import Direction
from transduce.text.tokenizer import EOS
from transduce.translator import Translator

LINES = [f"{a} {b} {c}" for a in ("red", "green") for b in ("bird", "horse") for c in ("sings", "runs")]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("argos") / "en-de.argosmodel"
    Export(Bundle.open(find_model("en-de")), "argos", path, "float32").write()
    return path


def test_the_package_has_what_argos_looks_for(package: Path) -> None:
    with zipfile.ZipFile(package) as archive:
        names = archive.namelist()
        metadata = json.loads(archive.read("translate-en_de-1_0/metadata.json"))
        tokenizer = archive.read("translate-en_de-1_0/sentencepiece.model")
        card = archive.read("translate-en_de-1_0/README.md").decode("ascii")
    assert {name.split("/")[0] for name in names} == {"translate-en_de-1_0"}  # or it would spill over other packages
    assert {"translate-en_de-1_0/model/model.bin", "translate-en_de-1_0/model/config.json"} <= set(names)
    assert metadata == {
        "package_version": "1.0",
        "argos_version": "1.10",
        "from_code": "en",
        "from_name": "English",
        "to_code": "de",
        "to_name": "German",
    }
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer)
    assert processor.decode(processor.encode("Where is the station?")) == "Where is the station?"
    assert "CC BY 2.0" in card


def test_it_translates_as_ours_with_the_options_of_argos(package: Path) -> None:
    sources = [pair.source for pair in builtin_corpus("tatoeba-en-de", "dev").pairs()][::10][:100]
    ours = [each.text for each in Translator.load("en-de", "torch").translate(sources, **ARGOS_OPTIONS)]
    theirs = [each.text for each in ArgosPackage(package, "float32").translate(sources)]
    assert len(set(ours)) > 80
    assert sum(map(str.__eq__, ours, theirs)) >= 97


def test_the_same_model_makes_the_same_file(package: Path, tmp_path: Path) -> None:
    Export(Bundle.open(find_model("en-de")), "argos", tmp_path / "again.argosmodel", "float32").write()
    assert (tmp_path / "again.argosmodel").read_bytes() == package.read_bytes()


def make_polyglot(path: Path) -> Bundle:
    """A random model of two vocabularies and two target languages."""
    pairs = [(line, " ".join(reversed(line.upper().split()))) for line in LINES]
    vocabularies = Vocabularies.learn(pairs, 300, shared=False, languages=["de", "fr"])
    sizes = {"target_vocab_size": vocabularies.target.size, "tying": "none"}
    config = TransformerConfig.tiny(vocabularies.source.size, d_model=32, d_ff=64, heads=4, **sizes)
    model = Transformer(config).eval()
    described = BundleConfig(
        architecture=asdict(config), source_language="en", target_language="de", target_languages=["de", "fr"]
    )
    weights = {name: value.detach() for name, value in model.named_parameters()}
    return Bundle.write(path, described, weights, vocabularies, {}, "card")


def test_what_argos_does_not_say_is_in_the_compiled_model(tmp_path: Path) -> None:
    """The tag before a source, its end, and that special ids have no probability."""
    bundle = make_polyglot(tmp_path / "m")
    vocabularies, model = bundle.vocabularies(), bundle.model()
    target = vocabularies.target.encode("SINGS BIRD RED")
    found = {}
    for language in ("de", "fr"):
        export = Export(bundle, "argos", tmp_path / f"{language}.argosmodel", languages=Direction("en", language))
        export.write()
        (source,) = vocabularies.encode_sources(LINES[:1], language)
        with torch.inference_mode():
            logits = model(torch.tensor([[*source, EOS]]), torch.tensor([[1, *target]]))[0]
            logits[:, list(vocabularies.target.unwritten)] = float("-inf")
        expected = logits.log_softmax(-1).gather(-1, torch.tensor([*target, EOS])[:, None]).squeeze(1).tolist()
        with zipfile.ZipFile(export.output) as archive:
            archive.extractall(tmp_path / language)
        theirs = ctranslate2.Translator(str(tmp_path / language / f"translate-en_{language}-1_0" / "model"))
        bare = [sentencepiece_pieces(tmp_path / language / f"translate-en_{language}-1_0", LINES[0])]
        (result,) = theirs.score_batch(bare, [vocabularies.target.pieces(target)])
        assert result.log_probs == pytest.approx(expected, abs=1e-3)
        found[language] = expected
    assert found["de"] != pytest.approx(found["fr"], abs=1e-3)  # the tag is read


def sentencepiece_pieces(package: Path, text: str) -> list[str]:
    processor = sentencepiece.SentencePieceProcessor(model_file=str(package / "sentencepiece.model"))
    pieces: list[str] = processor.encode(text, out_type=str)
    return pieces


def test_what_cannot_be_packed_is_refused(tmp_path: Path) -> None:
    bundle = make_polyglot(tmp_path / "m")
    with pytest.raises(ConfigError, match="does not translate into 'es'"):
        Export(bundle, "argos", tmp_path / "x.argosmodel", languages=Direction("en", "es")).write()
    with pytest.raises(ConfigError, match="Give --languages"):
        write_argos(bundle.model(), bundle.vocabularies(), tmp_path / "x.argosmodel", Direction("en"))
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="one file"):
        Export(bundle, "argos", tmp_path / "folder").write()
    assert not (tmp_path / "x.argosmodel").exists()


IDS = {character: index for index, (character, _) in enumerate(characters(), start=2)}


@pytest.mark.parametrize(
    "sentences",
    [
        ["Hello there.", "How are you?", "Fine!"],
        ["He said: “Go away.”", "Then he left."],
        ["Dr J. Smith came at 3.5 p.m. on foot."],
        ["Akwaaba!", "Ɛte sɛn?", "Me ho yɛ."],
        ["क्या हाल है?", "सब ठीक है।", "चलो।"],
        ["Wait... what?", "Yes."],
        ["no end at all"],
    ],
    ids=lambda sentences: sentences[0],
)
def test_sentences_end_where_people_say(sentences: list[str]) -> None:
    assert split(" ".join(sentences), joined=" ") == sentences


def test_full_stops_of_chinese_need_no_space() -> None:
    assert split("你好。「再见！」他走了。") == ["你好。", "「再见！」", "他走了。"]


def split(text: str, joined: str = "") -> list[str]:
    units = torch.tensor([[IDS.get(character, 1) for character in text]])
    features = torch.tensor([[[float(character.isupper())] for character in text]])
    ends = SentenceEnds()(units, features)[0].argmax(-1) == 2
    marked = "".join(character + "\0" * bool(end) for character, end in zip(text, ends, strict=True))
    return [part.removeprefix(joined) for part in marked.split("\0") if part]
