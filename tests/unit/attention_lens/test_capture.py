"""What the lens shows is what the model computes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from transduce.attention_lens import AttentionMaps
from transduce.attention_lens.capture import capture
from transduce.errors import ConfigError, InputError
from transduce.model.attention import MultiHeadAttention
from transduce.model.recurrent import RecurrentConfig, RecurrentTranslator
from transduce.translator import Translator

TEXT, TARGET = "We repaired the station, Kofi.", "بيتنا كبير قديم"
SHORT = {"max_length_extra": 4}
"""A random model seldom ends a sentence by itself."""


def plain_weights(
    layer: MultiHeadAttention, x: torch.Tensor, memory: torch.Tensor, causal: bool
) -> np.ndarray[Any, Any]:
    """softmax(QKᵀ / √d_k) in the paper's words: [heads, rows, columns], one number after the other."""
    w_q, w_k, _ = (part.numpy() for part in layer.qkv.weight.split(layer.widths))
    rows = []
    for head in range(layer.heads):
        part = slice(head * layer.d_k, (head + 1) * layer.d_k)
        q, k = x.numpy() @ w_q[part].T, memory.numpy() @ w_k[part].T
        for t in range(len(q)):
            legal = range(t + 1) if causal else range(len(k))
            scores = [math.exp(q[t] @ k[s] / math.sqrt(layer.d_k)) for s in legal]
            rows.append([score / sum(scores) for score in scores] + [0.0] * (len(k) - len(legal)))
    return np.array(rows).reshape(layer.heads, len(x), len(memory))


def test_the_maps_are_the_paper_s_equation(translator: Translator) -> None:
    model = translator.torch_engine.model
    inputs: dict[int, torch.Tensor] = {}
    memories: list[torch.Tensor] = []
    parts = [part for part in model.modules() if isinstance(part, MultiHeadAttention)]
    hooks = [
        part.register_forward_pre_hook(lambda part, args: inputs.__setitem__(id(part), args[0][0].clone()))
        for part in parts
    ]
    hooks.append(model.encoder.register_forward_hook(lambda part, args, output: memories.append(output[0].clone())))
    maps = translator.attention(TEXT, TARGET)
    for hook in hooks:
        hook.remove()
    encoder, decoder = (
        [part for name, part in model.named_modules() if isinstance(part, MultiHeadAttention) and name.startswith(side)]
        for side in ("encoder", "decoder")
    )
    with torch.inference_mode():
        for number, layer in enumerate(encoder):
            x = inputs[id(layer)]
            np.testing.assert_allclose(maps.encoder[number], plain_weights(layer, x, x, False), atol=1e-5)
        for number, (own, cross) in enumerate(zip(decoder[::2], decoder[1::2], strict=True)):
            x = inputs[id(own)]
            np.testing.assert_allclose(maps.decoder[number], plain_weights(own, x, x, True), atol=1e-5)
            expected = plain_weights(cross, inputs[id(cross)], memories[0], False)
            np.testing.assert_allclose(maps.cross[number], expected, atol=1e-5)


def test_shapes_are_layers_heads_rows_columns(translator: Translator, maps: AttentionMaps) -> None:
    source = len(translator.vocabularies.source.encode(TEXT)) + 1
    target = len(translator.vocabularies.target.encode(TARGET)) + 1
    assert maps.encoder.shape == (2, 3, source, source)
    assert maps.decoder.shape == (2, 3, target, target)
    assert maps.cross.shape == (2, 3, target, source)
    assert (len(maps.source.tokens), len(maps.target.tokens), len(maps.steps)) == (source, target, target)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_every_row_is_a_distribution(maps: AttentionMaps, kind: str) -> None:
    values = getattr(maps, kind)
    assert (values >= 0).all()
    np.testing.assert_allclose(values.sum(-1), 1, atol=1e-5)


def test_the_decoder_never_looks_ahead(maps: AttentionMaps) -> None:
    rows, columns = np.triu_indices(maps.decoder.shape[-1], k=1)
    assert not maps.decoder[:, :, rows, columns].any()


def test_a_sentence_alone_is_seen_as_in_a_padded_batch(translator: Translator, maps: AttentionMaps) -> None:
    source = [*translator.vocabularies.source.encode(TEXT), 2]
    target = [1, *translator.vocabularies.target.encode(TARGET)]
    batch = torch.tensor([[*source, 0, 0, 0], [5, 6] + [7] * (len(source) + 1)])
    with torch.inference_mode():
        _, record = translator.torch_engine.model.with_attention(
            batch, torch.tensor([[*target, 0], [1] * (len(target) + 1)])
        )
    rows, columns = len(target), len(source)
    for number in range(2):
        np.testing.assert_allclose(maps.cross[number], record.cross[number][0, :, :rows, :columns], atol=1e-5)
        np.testing.assert_allclose(maps.encoder[number], record.encoder[number][0, :, :columns, :columns], atol=1e-5)
        np.testing.assert_allclose(maps.decoder[number], record.decoder[number][0, :, :rows, :rows], atol=1e-5)


def test_the_probabilities_of_a_given_target_are_those_that_it_is_scored_with(
    translator: Translator, maps: AttentionMaps
) -> None:
    scored = translator.score(TEXT, TARGET)
    assert [math.log(step.probability) for step in maps.steps] == pytest.approx(scored.token_scores, abs=1e-4)
    assert maps.text == TARGET


def test_the_alternatives_are_the_most_probable_tokens(translator: Translator, maps: AttentionMaps) -> None:
    first = maps.steps[0].alternatives
    assert len(first) == 5
    assert [one.probability for one in first] == sorted((one.probability for one in first), reverse=True)
    source = translator.vocabularies.encode_sources([TEXT])[0]
    pieces = translator.vocabularies.target.all_pieces()
    scored = translator.torch_engine.score([source] * len(pieces), [[index] for index in range(len(pieces))])
    scores = {piece: hypothesis.token_scores[0] for piece, hypothesis in zip(pieces, scored, strict=True)}
    best = sorted(scores, key=scores.__getitem__, reverse=True)[:5]
    assert [one.token for one in first] == best
    assert math.log(first[0].probability) == pytest.approx(scores[best[0]], abs=1e-4)


@pytest.mark.parametrize("text", [TEXT, "Where is the station?", "ɛno 👍"])
def test_without_a_target_it_is_the_translation_that_translate_gives(translator: Translator, text: str) -> None:
    maps = translator.attention(text, **SHORT)
    assert maps.text == translator.translate(text, guard=False, **SHORT).text


def test_the_built_in_model_is_looked_at_too() -> None:
    builtin = Translator.load("en-de")
    text = "My sister works in a hospital."
    maps = builtin.attention(text)
    assert maps.text == builtin.translate(text).text
    cross = maps.words()["cross"]
    strongest = dict(zip(cross.rows, (cross.columns[place] for place in cross.mean([3]).argmax(-1)), strict=True))
    assert (strongest["Schwester"], strongest["end"]) == ("sister", "end")


def test_the_language_that_is_asked_for_is_seen_as_a_token(make_translator: Callable[..., Translator]) -> None:
    polyglot = make_translator("de", "fr")
    maps = polyglot.attention(TEXT, to="fr", **SHORT)
    assert maps.source.tokens[0] == "<2fr>"
    assert (maps.source.words[0].text, maps.source.words[0].last) == ("<2fr>", 0)
    assert maps.source.text == TEXT
    assert (maps.source_language, maps.target_language) == ("en", "fr")
    assert polyglot.attention(TEXT, **SHORT).target_language == "de"


def test_looking_leaves_a_model_in_training_as_it_was(make_translator: Callable[..., Translator]) -> None:
    translator = make_translator(dropout=0.5)
    expected = translator.attention(TEXT, TARGET)
    translator.torch_engine.model.train()
    again = translator.attention(TEXT, TARGET)
    np.testing.assert_array_equal(again.cross, expected.cross)
    assert translator.torch_engine.model.training


def test_several_sentences_are_taken_as_one(translator: Translator) -> None:
    text = " ".join([TEXT] * 10)
    assert len(text) > 200
    assert translator.attention(text, TARGET).source.text == text


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("",), {}, "no text to look at. Give a sentence"),
        ((" \n",), {}, "no text to look at"),
        (("We " * 512,), {}, "the text has 1025 tokens; the lens shows up to 512"),
        ((TEXT, "We " * 512), {}, "the translation has 1025 tokens"),
        ((TEXT, TARGET), {"beam": 2}, "beam: nothing is searched for"),
        ((TEXT, [TARGET]), {}, "one text, not at a list"),
        (([TEXT],), {}, "one text, not at a list"),
        ((TEXT,), {"to": "yy"}, "does not translate into 'yy'"),
        ((TEXT,), {"bean": 2}, "Did you mean 'beam'"),
    ],
)
def test_what_cannot_be_looked_at_is_said_in_words(
    translator: Translator, arguments: tuple[Any, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises((InputError, ConfigError), match=message):
        translator.attention(*arguments, **options)


def test_a_text_longer_than_the_model_s_positions_is_refused(make_translator: Callable[..., Translator]) -> None:
    short = make_translator(positions="learned", max_length=8)
    with pytest.raises(InputError, match="the lens shows up to 8"):
        short.attention(TEXT, TARGET)


def test_additive_alignment_is_one_layer_of_one_head(translator: Translator) -> None:
    vocabularies = translator.vocabularies
    torch.manual_seed(5)
    model = RecurrentTranslator(
        RecurrentConfig(vocab_size=vocabularies.source.size, d_model=16, hidden=12, attention_width=8)
    ).eval()
    source, target = vocabularies.source.encode(TEXT), [*vocabularies.target.encode(TARGET), 2]
    maps = capture(model, vocabularies, source, target)
    with torch.inference_mode():
        read, written = torch.tensor([[*source, 2]]), torch.tensor([[1, *target[:-1]]])
        logits, record = model.with_attention(read, written)
    assert maps.cross.shape == (1, 1, len(target), len(source) + 1)
    np.testing.assert_array_equal(maps.cross[0], record.cross[0][0].numpy())
    np.testing.assert_allclose(maps.cross.sum(-1), 1, atol=1e-5)
    expected = logits[0].log_softmax(-1)[range(len(target)), target].tolist()
    assert [math.log(step.probability) for step in maps.steps] == pytest.approx(expected, abs=1e-4)
    assert maps.kinds == list(maps.words()) == ["cross"]
    with pytest.raises(ConfigError, match=r"no encoder attention\. It has: cross\."):
        maps.at("words", "encoder")
