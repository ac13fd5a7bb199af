"""What is exported to Hugging Face computes the same there, and when it comes back."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from transduce.bundle import Bundle, BundleConfig, find_model
from transduce.data.builtin import builtin_corpus
from transduce.errors import ConfigError
from transduce.interop import load_huggingface
from transduce.interop.export import Export
from transduce.interop.huggingface_export import export_huggingface
from transduce.model import RecurrentConfig, RecurrentTranslator, Transformer, TransformerConfig
from transduce.model.vision import VisionConfig, VisionTransformer
from transduce.text import Vocabularies


def loaded_by_theirs(path: Path, architecture: str) -> Any:
    import transformers

    model, report = getattr(transformers, architecture).from_pretrained(path, output_loading_info=True)
    assert not report["missing_keys"], report
    assert not report["unexpected_keys"], report
    return model.eval()


def test_what_was_imported_goes_back_to_what_it_was(case: Any, tmp_path: Path) -> None:
    ours = load_huggingface(case.saved(tmp_path / "theirs"))
    kind = export_huggingface(ours, tmp_path / "ours")
    assert kind.architecture == case.architecture
    with torch.inference_mode():
        back = load_huggingface(tmp_path / "ours")(*case.inputs)
        torch.testing.assert_close(back[case.real], case.logits[case.real], rtol=0, atol=1e-4)
    case = type(case)(case.architecture, case.settings)
    case.theirs = loaded_by_theirs(tmp_path / "ours", kind.architecture)
    with torch.inference_mode():
        torch.testing.assert_close(case.logits[case.real], back[case.real], rtol=0, atol=1e-4)


OURS = {
    "the-paper": {},
    "two-vocabularies": {"target_vocab_size": 40, "tying": "target"},
    "untied-gelu": {"tying": "none", "activation": "gelu", "scale_embeddings": False},
    "embeddings-only": {"tying": "embeddings"},
    "target-only": {"tying": "target"},
    "sides": {"encoder_layers": 3, "decoder_layers": 1, "decoder_heads": 2, "decoder_d_ff": 20, "logits_bias": True},
    "pre-norm": {"norm_position": "pre", "activation": "silu"},
    "pre-norm-untied": {"norm_position": "pre", "tying": "target", "feedforward_bias": False},
}


@pytest.mark.parametrize("name", OURS)
def test_our_translators_give_the_same_logits_in_transformers(name: str, tmp_path: Path) -> None:
    settings = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 16, "d_ff": 24, "heads": 4} | OURS[name]
    model = drawn(Transformer(TransformerConfig.tiny(50, **settings)))
    kind = export_huggingface(model, tmp_path / "model")
    assert kind.architecture == ("MarianMTModel" if "pre" not in name else "PegasusForConditionalGeneration")
    source, target = torch.randint(3, 40, (3, 9)), torch.randint(3, 40, (3, 7))
    source[1, 5:] = 0
    theirs = loaded_by_theirs(tmp_path / "model", kind.architecture)
    with torch.inference_mode():
        expected = model(source, target)
        mask = (source != 0).long()
        found = theirs(input_ids=source, attention_mask=mask, decoder_input_ids=target).logits
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)
        torch.testing.assert_close(load_huggingface(tmp_path / "model")(source, target), expected, rtol=0, atol=1e-4)


def test_our_pictures_give_the_same_logits_in_transformers(tmp_path: Path) -> None:
    shape = {"d_model": 16, "d_ff": 24, "heads": 2, "encoder_layers": 2, "norm_position": "pre"}
    config = VisionConfig.tiny(3, **shape, positions="learned", max_length=17, labels=4)
    model = drawn(VisionTransformer(config))
    kind = export_huggingface(model, tmp_path / "model")
    pictures = torch.randn(2, 1, 28, 28)
    with torch.inference_mode():
        found = loaded_by_theirs(tmp_path / "model", kind.architecture)(pictures).logits
        torch.testing.assert_close(found.unsqueeze(1), model(pictures), rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [({"norm": "rms"}, "norm='rms'"), ({"positions": "rotary"}, "positions='rotary'"), ({"d_k": 3}, "heads")],
)
def test_what_has_no_counterpart_is_refused_with_the_reason(
    settings: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    model = Transformer(TransformerConfig.tiny(50, encoder_layers=1, decoder_layers=1, **settings))
    with pytest.raises(ConfigError, match=reason):
        export_huggingface(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_recurrent_network_has_no_counterpart(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no counterpart"):
        export_huggingface(RecurrentTranslator(RecurrentConfig.base(vocab_size=20)), tmp_path / "model")


def drawn(model: Any) -> Any:
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model.eval()


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("export") / "en-de"
    Export(Bundle.open(find_model("en-de")), "huggingface", path).write()
    return path


def test_a_trained_translator_writes_the_same_in_transformers(directory: Path) -> None:
    pairs = list(builtin_corpus("tatoeba-en-de", "dev").pairs())[::31][:60]
    door = Export(Bundle.open(find_model("en-de")), "huggingface", directory)
    report = door.verify([pair.source for pair in pairs], [pair.target for pair in pairs])
    assert report.identical >= 59
    assert report.largest_logit_difference is not None
    assert report.largest_logit_difference < 1e-4
    assert report.largest_score_difference < 1e-4
    assert abs(report.bleu_difference or 0) < 0.5


@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
def test_its_card_shows_how_to_use_it(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    card = (directory / "README.md").read_text(encoding="utf-8")
    assert card.startswith("---\nlibrary_name: transformers\n")
    code = card.split("```python\n")[1].split("```")[0].replace('"."', repr(str(directory)))
    exec(code.replace("…", "Where is the station?"))
    assert capsys.readouterr().out == "['Wo ist der Bahnhof?']\n"


@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
@pytest.mark.parametrize("shared", [True, False])
def test_their_tokenizer_cuts_as_ours_does(shared: bool, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    pairs = [(pair.source, pair.target) for pair in list(builtin_corpus("tatoeba-en-de", "dev").pairs())[:300]]
    vocabularies = Vocabularies.learn(pairs, 600, shared=shared, languages=["de", "fr"], protected=["<br>"])
    sizes = {} if shared else {"target_vocab_size": vocabularies.target.size, "tying": "target"}
    shape = TransformerConfig.tiny(vocabularies.source.size, encoder_layers=1, decoder_layers=1, **sizes)
    description = BundleConfig(
        architecture=asdict(shape), source_language="en", target_language="de", target_languages=["de", "fr"]
    )
    weights = dict(Transformer(shape).named_parameters())
    bundle = Bundle.write(tmp_path / "bundle", description, weights, vocabularies, {}, "# Nothing yet\n")
    Export(bundle, "huggingface", tmp_path / "exported").write()
    theirs = AutoTokenizer.from_pretrained(tmp_path / "exported")
    texts = ["Where is the station?", "A line<br>break, an emoji 🙂 and 你好.", *(source for source, _ in pairs[:40])]
    for text in texts:
        for language in ("de", "fr"):
            (ours,) = vocabularies.encode_sources([text], language)
            assert theirs(f">>{language}<<{text}").input_ids == [*ours, 2]
    for text in ["Wo ist der Bahnhof?", "🙂 你好", *(target for _, target in pairs[:40])]:
        ids = vocabularies.target.encode(text)
        assert theirs(text_target=text).input_ids == [*ids, 2]
        assert theirs.decode([1, *ids, 2], skip_special_tokens=True).removeprefix("<s>").strip() == text
