"""Imported models that do not translate: BERT fills and names, GPT-2 writes on, ViT names pictures, each as it did."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from transduce.attention_lens.looking import look_at_text
from transduce.classifier import Classifier, Filler
from transduce.generator import Generator
from transduce.interop.imported import import_huggingface

SaveTokenizer = Callable[[str, Path], Any]
BERT = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
TEXT = "they repaired the bicycles!"


@pytest.fixture
def bert(tmp_path: Path, save_tokenizer: SaveTokenizer) -> Callable[[str], tuple[Any, Any, Any]]:
    """Theirs, their tokenizer and ours, of a class."""

    def make(name: str) -> tuple[Any, Any, Any]:
        import transformers

        tokenizer = save_tokenizer("bert", tmp_path)
        torch.manual_seed(0)
        config = transformers.BertConfig(
            vocab_size=len(tokenizer), **BERT, initializer_range=0.3, id2label={0: "bad", 1: "good", 2: "neither"}
        )
        model = getattr(transformers, name)(config).eval()
        model.save_pretrained(tmp_path)
        return model, tokenizer, import_huggingface(tmp_path, tmp_path / "ours").bundle

    return make


def test_bert_fills_masks(bert: Callable[[str], tuple[Any, Any, Any]]) -> None:
    model, tokenizer, bundle = bert("BertForMaskedLM")
    text = "they [MASK] the bicycles!"
    with torch.no_grad():
        batch = tokenizer(text, return_tensors="pt")
        logits = model(**batch).logits[0]
    place = batch["input_ids"][0].tolist().index(tokenizer.mask_token_id)
    expected = logits[place].softmax(-1)
    special = set(tokenizer.all_special_ids)
    best = [index for index in expected.argsort(descending=True).tolist() if index not in special][:4]
    found = Filler(bundle).fill(text, best=4)[0]
    words = [tokenizer.convert_ids_to_tokens(index) for index in best]
    assert [each.label.strip() for each in found] == [word.removeprefix("##") for word in words]
    np.testing.assert_allclose([each.probability for each in found], expected[best], atol=1e-5)
    maps = look_at_text(bundle, text)
    assert [word.text for word in maps.source.words][:2] == ["start", "they"]  # [CLS] starts a text
    assert maps.guesses[0].alternatives[0].probability == pytest.approx(found[0].probability, abs=1e-5)


def test_bert_names_texts_and_words(bert: Callable[[str], tuple[Any, Any, Any]]) -> None:
    model, tokenizer, bundle = bert("BertForSequenceClassification")
    with torch.no_grad():
        expected = model(**tokenizer(TEXT, return_tensors="pt")).logits[0].softmax(-1)
    found = Classifier(bundle).classify([TEXT, "we painted the house."])[0]
    assert {each.label: pytest.approx(each.probability, abs=1e-5) for each in found} == dict(
        zip(("bad", "good", "neither"), expected.tolist(), strict=True)
    )


def test_gpt2_writes_on(tmp_path: Path, save_tokenizer: SaveTokenizer) -> None:
    import transformers

    tokenizer = save_tokenizer("gpt2", tmp_path)
    torch.manual_seed(0)
    end = tokenizer.eos_token_id
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer), n_embd=16, n_layer=2, n_head=2, n_positions=64, bos_token_id=end, eos_token_id=end,
        initializer_range=0.3,
    )  # fmt: skip
    model = transformers.GPT2LMHeadModel(config).eval()
    model.save_pretrained(tmp_path)
    bundle = import_huggingface(tmp_path, tmp_path / "ours").bundle
    prompt = "We painted  the\nhouse"
    ids = torch.tensor([[end, *tokenizer(prompt)["input_ids"]]])
    written = model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=8, do_sample=False, pad_token_id=0
    )
    expected = tokenizer.decode(written[0, ids.shape[1] :], skip_special_tokens=True)
    assert Generator(bundle).generate(prompt, tokens=8, beam=1).text == expected


def test_vit_names_pictures(tmp_path: Path) -> None:
    import transformers

    torch.manual_seed(0)
    labels = {0: "cat", 1: "dog", 2: "boat"}
    config = transformers.ViTConfig(**BERT, image_size=12, patch_size=4, id2label=labels, initializer_range=0.3)
    model = transformers.ViTForImageClassification(config).eval()
    model.save_pretrained(tmp_path)
    bundle = import_huggingface(tmp_path, tmp_path / "ours").bundle
    picture = np.random.default_rng(0).integers(0, 256, (1, 12, 12, 3), dtype=np.uint8)
    pixels = torch.from_numpy(picture).permute(0, 3, 1, 2).float() / 127.5 - 1  # mean and deviation 0.5
    with torch.no_grad():
        expected = model(pixels).logits[0].softmax(-1).tolist()
    found = Classifier(bundle).classify_pictures(picture)[0]
    assert {each.label: each.probability for each in found} == {
        labels[place]: pytest.approx(value, abs=1e-5) for place, value in enumerate(expected)
    }
