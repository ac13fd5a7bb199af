"""Texts are continued: what is streamed is what is returned, drawn by seed or searched, and never past its places."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from transduce.bundle import Bundle
from transduce.errors import BundleError, ConfigError, InputError
from transduce.generator import Generator
from transduce.text import Tokenizer
from transduce.text.tokenizer import BOS, EOS
from transduce.translator import Translator

TEXT = "We painted the house.\nThey repaired the bicycles!\n\n  ɛno, 你好 — 👍🏽\n" * 3
PROMPTS = ["", "They repaired\n", "ɛ"]


@pytest.fixture(scope="module", params=["char", "bpe"])
def vocabulary(request: pytest.FixtureRequest) -> Tokenizer:
    return Tokenizer.learn([TEXT], 300, request.param, documents=True)


def bytes_first(module: Any) -> None:
    """So that characters of several bytes, whole and broken, are what it writes."""
    with torch.no_grad():
        module.projection.weight[4:264] *= 3


@pytest.fixture(scope="module")
def generator(write_model: Callable[..., Bundle], vocabulary: Tokenizer) -> Generator:
    torch.manual_seed(3)
    return Generator(write_model("decoder-only", "language-model", vocabulary, positions="rotary", change=bytes_first))


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize(
    "options",
    [{"seed": 1}, {"seed": 2, "temperature": 2.0}, {"beam": 1}, {"beam": 3}, {"seed": 3, "n_best": 3}],
    ids=str,
)
def test_what_is_streamed_is_what_is_returned(generator: Generator, prompt: str, options: dict[str, Any]) -> None:
    parts: list[str] = []
    text = generator.generate(prompt, 24, parts.append, **options).text
    assert "".join(parts) == text
    assert all(parts)
    assert text == generator.generate(prompt, 24, **options).text


def test_a_character_of_several_bytes_is_streamed_whole(
    write_model: Callable[..., Bundle], vocabulary: Tokenizer
) -> None:
    """A model that writes the bytes of one text, one after the other, whatever came before."""
    spelled = [vocabulary.all_pieces().index(f"<0x{byte:02X}>") for byte in "ɛ你👍🏽é".encode()]

    def spell(module: Any) -> None:
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.zero_()
            module.norm.weight.fill_(1.0)
            for place, token in enumerate(spelled):  # each position says its token: a table of positions is all
                module.embedding.positions.weight[place, place] = 1.0
                module.projection.weight[token] += torch.eye(16)[place] * 30

    shape = {"positions": "learned", "max_length": 16, "norm_position": "pre"}
    generator = Generator(write_model("decoder-only", "language-model", vocabulary, change=spell, **shape))
    parts: list[str] = []
    count = len(spelled)
    assert count == 15
    text = generator.generate("", count, parts.append, beam=1).text
    assert text.startswith("ɛ你👍🏽é")
    assert parts[:5] == ["ɛ", "你", "👍", "🏽", "é"]


def test_the_same_seed_draws_the_same_and_another_another(generator: Generator) -> None:
    one, again, other = (generator.generate("We ", 30, seed=seed).text for seed in (4, 4, 5))
    assert one == again
    assert one != other


def test_samples_differ_and_come_with_their_log_probabilities(generator: Generator) -> None:
    found = generator.generate_several("We ", 12, n_best=4, seed=1)
    assert len({each.text for each in found}) == 4
    for each in found:
        assert each.log_probability < 0
        assert 1 <= each.tokens <= 13


def test_a_log_probability_is_that_of_what_was_added(generator: Generator) -> None:
    ids = generator.vocabulary.encode_document("We painted")
    best = generator.generate("We painted", 5, beam=1)
    # Greedy, so that the tokens are known: the likeliest of those that are text or the end.
    tokens, total = [BOS], 0.0
    forbidden = list(generator.vocabulary.unwritten)
    with torch.inference_mode():
        for place in range(len(ids) + best.tokens):
            logs = generator.model(torch.tensor([tokens]))[0, -1].log_softmax(-1)
            allowed = logs.clone()
            allowed[forbidden] = -math.inf
            last = place == len(ids) + 5  # where it must end
            token = ids[place] if place < len(ids) else generator.model.eos_id if last else int(allowed.argmax())
            total += float(logs[token]) if place >= len(ids) else 0.0
            tokens.append(token)
    assert best.log_probability == pytest.approx(total, abs=1e-3)
    assert generator.vocabulary.decode(tokens) == "We painted" + best.text


def test_a_wider_beam_finds_what_is_at_least_as_probable(generator: Generator) -> None:
    options = {"length_penalty": "none"}
    greedy, wide = (generator.generate("We ", 8, beam=beam, **options).log_probability for beam in (1, 8))
    assert wide >= greedy - 1e-4
    found = generator.generate_several("We ", 8, beam=4, n_best=4, **options)
    assert [each.log_probability for each in found] == sorted((each.log_probability for each in found), reverse=True)


def test_no_more_tokens_are_written_than_asked_for(generator: Generator) -> None:
    for tokens in (1, 7):
        found = generator.generate("We ", tokens, seed=3)
        assert len(generator.vocabulary.encode_document(found.text)) <= tokens or "\ufffd" in found.text
        assert found.tokens <= tokens + 1  # its end may come after them


def test_special_ids_are_never_written(generator: Generator) -> None:
    found = generator.generate_several("", 60, n_best=6, seed=2, temperature=5.0)
    assert not any(piece in each.text for each in found for piece in ("<s>", "<pad>", "<unk>", "⁇"))


def test_a_vocabulary_of_sentences_keeps_the_space_before_the_first_word(write_model: Callable[..., Bundle]) -> None:
    """A translator's vocabulary, which a language model has if it was trained from one."""
    vocabulary = Tokenizer.learn(["We painted the house.", "They painted the bicycles."] * 3, 300)
    space = vocabulary.all_pieces().index("▁the")

    def always(module: Any) -> None:
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.zero_()
            module.norm.bias.fill_(1.0)
            module.projection.weight[space] = 1.0

    bundle = write_model("decoder-only", "language-model", vocabulary, change=always, norm_position="pre")
    parts: list[str] = []
    assert Generator(bundle).generate("We", 2, parts.append, beam=1).text == " the the"
    assert parts == [" the", " the"]
    assert Generator(bundle).generate("", 2, beam=1).text == "the the"


# Mistakes


@pytest.fixture(scope="module")
def limited(write_model: Callable[..., Bundle], vocabulary: Tokenizer) -> Generator:
    return Generator(
        write_model(
            "decoder-only", "language-model", vocabulary, positions="learned", max_length=20, change=bytes_first
        )
    )


def test_learned_positions_are_used_to_the_last_and_not_beyond(limited: Generator) -> None:
    limited.generate("", 19, beam=1)
    with pytest.raises(
        InputError, match=r"the prompt has 0 tokens and 20 are to be written, .* learned 20 positions"
    ) as caught:
        limited.generate("", 20)
    assert caught.value.remedy
    assert "at most 19 tokens" in caught.value.remedy
    assert "model.positions=rotary" in caught.value.remedy
    with pytest.raises(InputError, match="horten the prompt"):
        limited.generate("\n" * 20, 1)


@pytest.mark.parametrize("tokens", [0, -3])
def test_at_least_one_token_is_to_be_written(generator: Generator, tokens: int) -> None:
    with pytest.raises(InputError, match=rf"{tokens} tokens are to be written\. Ask for one or more"):
        generator.generate("We", tokens)


def test_options_of_drawing_do_not_go_with_a_beam(generator: Generator) -> None:
    with pytest.raises(ConfigError, match=r"temperature=2\.0 has no effect"):
        generator.generate("We", 3, beam=2, temperature=2.0)
    with pytest.raises(ConfigError, match=r"'temprature' is not a decoding option\. Did you mean 'temperature'\?"):
        generator.generate("We", 3, temprature=2.0)


def test_a_model_of_another_kind_is_answered_with_its_command(
    write_model: Callable[..., Bundle], vocabulary: Tokenizer, generator: Generator
) -> None:
    fill = write_model("encoder-only", "masked-language-model", vocabulary)
    with pytest.raises(BundleError, match=r"task is masked-language-model, not language-model\. Use: transduce fill"):
        Generator(fill)
    translate = write_model("transformer", "translation", vocabulary)
    with pytest.raises(BundleError, match=rf"{translate.path}: .*Use: transduce translate"):
        Generator.load(translate.path)
    with pytest.raises(BundleError, match=r"task is language-model, not .*Use: transduce generate"):
        Translator.load(generator.bundle.path).translate("We")


def test_beyond_what_is_read_at_once_the_last_half_of_it_is_read_again(generator: Generator) -> None:
    """As many tokens as asked for, streamed as they are returned, each the likeliest after what was read."""
    context = 12
    short = Generator(replace(generator.bundle, config=replace(generator.bundle.config, context=context)))
    heard: list[str] = []
    found = short.generate("We painted", 30, heard.append, beam=1, suppress=(EOS,))
    assert "".join(heard) == found.text
    assert found.tokens == 31  # and the end that the limit puts there
    text, forbidden = short.vocabulary.encode_document("We painted"), [*short.vocabulary.unwritten, EOS]
    read = list(text) if len(text) + 1 < context else text[-(context // 2) :]
    for _ in range(30):
        if len(read) == context:
            read = text[-(context // 2) :]
        with torch.inference_mode():
            logits = short.model(torch.tensor([[BOS, *read]]))[0, -1]
            logits[forbidden] = -math.inf
        read.append(int(logits.argmax()))
        text.append(read[-1])
    assert short.vocabulary.decode(text) == "We painted" + found.text
