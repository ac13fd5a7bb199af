"""Whatever a model would rather write, what is decoded with brackets is a tree over the words of its sentence."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.decoding import Brackets, DecodingOptions, decode, score
from transduce.decoding.filters import FORBIDDEN, keep_balanced
from transduce.errors import ConfigError, InputError
from transduce.model import Transformer, TransformerConfig

EOS = 2
PAIRS = {4: 7, 5: 8, 6: 8}  # two openings share a closing
LEAVES = (9, 10)
SIZE = 14


def words_of(count: int) -> tuple[int, ...]:
    return tuple(LEAVES[index % 2] for index in range(count))


def make_brackets(*counts: int, **overrides: Any) -> Brackets:
    words = tuple(words_of(count) for count in counts)
    fields: dict[str, Any] = {"openings": tuple(PAIRS), "closings": tuple(PAIRS.values()), "words": words}
    fields["leaves"] = LEAVES
    return Brackets(**fields | overrides)


def check_tree(tokens: list[int], words: int, limit: int, deepest: int = 100) -> None:
    """Walk through a hypothesis with a stack, which the filter does not have."""
    assert len(tokens) <= limit
    assert tokens[-1] == EOS
    stack: list[list[int]] = []  # the opening token and how much is in it
    roots, written = 0, []
    for token in tokens[:-1]:
        if token in PAIRS:
            roots += not stack
            if stack:
                stack[-1][1] += 1
            stack.append([token, 0])
            assert len(stack) <= deepest
        elif token in LEAVES:
            written.append(token)
            stack[-1][1] += 1
        else:
            opening, parts = stack.pop()
            assert token == PAIRS[opening]
            assert parts > 0
    assert stack == []
    assert roots == 1
    assert tuple(written) == words_of(words)


def make_random(seed: int, sharpness: float) -> Transformer:
    torch.manual_seed(seed)
    config = TransformerConfig.tiny(
        SIZE, d_model=8, d_ff=16, heads=2, encoder_layers=1, decoder_layers=1, tying="none", dropout=0.0
    )
    model = Transformer(config).eval()
    with torch.no_grad():
        model.projection.weight *= sharpness
    return model


class Stubborn:
    """A stepper that always wants the same, and holds all else for impossible."""

    bos_id, eos_id, pad_id, output_size, max_target_length = 1, EOS, 0, SIZE, None

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted

    def prefill(self, source_ids: torch.Tensor, capacity: int) -> None: ...

    def step(self, state: None, token_ids: torch.Tensor) -> torch.Tensor:
        logits = torch.full((*token_ids.shape, SIZE), float("-inf"))
        logits[..., self.wanted] = 0.0
        return logits

    def reorder(self, state: None, rows: torch.Tensor) -> None: ...


WAYS = [{"beam": 1}, {"beam": 4, "n_best": 4}, {"sampling": True, "n_best": 3}, {"sampling": True, "top_p": 0.5}]


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    sharpness=st.sampled_from([0.0, 1.0, 10.0]),
    words=st.lists(st.integers(1, 12), min_size=1, max_size=4),
    spare=st.integers(0, 9),
    deepest=st.sampled_from([1, 3, 100]),
    way=st.sampled_from(WAYS),
)
def test_every_hypothesis_is_a_tree(
    seed: int, sharpness: float, words: list[int], spare: int, deepest: int, way: dict[str, Any]
) -> None:
    model = make_random(seed, sharpness)
    limit = max(words) + 3 + spare  # with nothing to spare, only one bracket has room
    options = DecodingOptions(
        brackets=make_brackets(*words, deepest=deepest), max_length_ratio=0, max_length_extra=limit, **way
    )
    source_ids = torch.randint(3, SIZE, (len(words), 5))
    decoded = decode(model, source_ids, options)
    for count, hypotheses in zip(words, decoded, strict=True):
        assert hypotheses
        for hypothesis in hypotheses:
            check_tree(hypothesis.tokens, count, limit, deepest)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("wanted", range(SIZE))
def test_a_model_that_wants_something_else_writes_a_tree_all_the_same(wanted: int, way: dict[str, Any]) -> None:
    limits = {"max_length_ratio": 0, "max_length_extra": 30}
    stepper = Stubborn(wanted)
    decoded = decode(stepper, torch.tensor([[3], [4]]), DecodingOptions(brackets=make_brackets(3, 27), **limits, **way))
    for count, hypotheses in zip((3, 27), decoded, strict=True):
        assert hypotheses
        for hypothesis in hypotheses:
            check_tree(hypothesis.tokens, count, limit=30)


def test_closing_is_put_off_until_what_is_left_is_just_enough() -> None:
    options = DecodingOptions(brackets=make_brackets(2), beam=1, max_length_ratio=0, max_length_extra=11)
    ((best,),) = decode(Stubborn(5), torch.tensor([[3]]), options)
    assert [token for token in best.tokens if token == 5] == [5] * 4  # 2 words, 4 pairs of brackets, the end
    assert len(best.tokens) == 11


def test_a_tree_that_the_model_wants_is_left_as_it_is(scripted: type[Any]) -> None:
    """With brackets 3 … 4 around words 0 the table's own first choice is a tree: the same is found, scored the same."""
    tree = [3, 0, 3, 0, 4, 4, EOS]
    stepper = scripted({tuple(tree[:place]): {tree[place]: 0.9, EOS: 0.1} for place in range(len(tree) - 1)})
    brackets = Brackets(openings=(3,), closings=(4,), leaves=(0,), words=((0, 0),))
    source_ids = torch.tensor([[3]])
    ((plain,),) = decode(stepper, source_ids, DecodingOptions(beam=1))
    ((filtered,),) = decode(stepper, source_ids, DecodingOptions(beam=1, brackets=brackets))
    assert plain == filtered
    assert filtered.tokens == tree


def test_the_log_probability_is_the_models_own_and_the_score_takes_words_for_one() -> None:
    model = make_random(3, 1.0)
    source_ids = torch.randint(3, SIZE, (2, 5))
    options = DecodingOptions(brackets=make_brackets(4, 6))
    for hypotheses, source in zip(decode(model, source_ids, options), source_ids, strict=True):
        best = hypotheses[0]
        (again,) = score(model, source[None], [best.tokens])
        assert best.log_probability == pytest.approx(again.log_probability, abs=1e-4)
        with torch.no_grad():
            log_probs = model(source[None], torch.tensor([[1, *best.tokens[:-1]]]))[0].log_softmax(-1)
        total = 0.0
        for token, row in zip(best.tokens, log_probs, strict=True):
            total += float(row[list(LEAVES)].exp().sum().log() if token in LEAVES else row[token])
        assert best.score == pytest.approx(total / ((5 + len(best.tokens)) / 6) ** 0.6, abs=1e-4)


def test_a_sentence_gets_the_same_tree_alone_and_in_a_batch() -> None:
    model = make_random(4, 3.0)
    source_ids = torch.randint(3, SIZE, (3, 5))
    words = (2, 7, 4)
    together = decode(model, source_ids, DecodingOptions(brackets=make_brackets(*words)))
    for index, count in enumerate(words):
        (alone,) = decode(model, source_ids[index : index + 1], DecodingOptions(brackets=make_brackets(count)))
        assert alone[0].tokens == together[index][0].tokens


@pytest.mark.parametrize(
    ("written", "left", "allowed"),
    [
        ([], 9, [4, 5, 6]),
        ([4], 9, [4, 5, 6, 9]),  # an empty bracket is not closed
        ([4, 9], 9, [4, 5, 6, 10]),  # nor the outermost while there are words
        ([4, 5, 9], 9, [4, 5, 6, 8, 10]),
        ([4, 6, 9, 8, 5, 10, 8], 4, [7]),  # all words are written
        ([4, 9, 10, 7], 3, [EOS]),
        ([13, 4, 9], 9, [4, 5, 6, 10]),  # what is no part of the tree counts for nothing
        ([4, 5, 9], 5, [8, 10]),  # one word, two to close and the end: one token to spare, and a bracket takes two
        ([4, 5, 9], 6, [4, 5, 6, 8, 10]),
    ],
)
def test_what_may_come_next_in_a_tree_of_two_words(written: list[int], left: int, allowed: list[int]) -> None:
    found = keep_balanced(
        torch.zeros(1, 1, SIZE),
        torch.tensor(written, dtype=torch.long).view(1, 1, -1),
        make_brackets(2),
        left_B=torch.tensor([left]),
        eos_id=EOS,
    )
    assert (found[0, 0] > FORBIDDEN).nonzero().flatten().tolist() == sorted(allowed)


def test_a_prefix_comes_before_the_tree_and_is_no_part_of_it() -> None:
    options = DecodingOptions(brackets=make_brackets(3), prefix=(12,), max_length_ratio=0, max_length_extra=7)
    ((best,),) = decode(make_random(1, 1.0), torch.tensor([[3, 4]]), options)
    assert best.tokens[0] == 12
    check_tree(best.tokens[1:], words=3, limit=6)


def test_some_labels_can_be_forbidden() -> None:
    options = DecodingOptions(brackets=make_brackets(5), suppress=(4, 6), sampling=True, n_best=10)
    (samples,) = decode(make_random(1, 0.0), torch.tensor([[3, 4]]), options)
    for sample in samples:
        check_tree(sample.tokens, words=5, limit=52)
        assert not {4, 6} & set(sample.tokens)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"brackets": make_brackets(3), "max_length_extra": 5},
            r"of 3 words, has 6 tokens or more, but at most 5.*Raise",
        ),
        ({"brackets": make_brackets(3, 4)}, r"the words of 2 sentences for 1"),
        ({"brackets": make_brackets(3), "prefix": (4,)}, r"prefix of sentence 0 holds a part of the tree"),
        (
            {"brackets": make_brackets(words=((SIZE,),), leaves=(SIZE,))},
            r"brackets 0 holds id 14, outside the vocabulary",
        ),
        ({"brackets": make_brackets(words=((EOS,),), leaves=(EOS,))}, r"brackets hold the end of sentence, id 2"),
    ],
)
def test_wrong_input_is_named_with_its_remedy(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        decode(make_random(1, 1.0), torch.tensor([[3]]), DecodingOptions(**{"max_length_ratio": 0} | options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_length": 3}, r"min_length=3 and brackets cannot both be kept to\. Set min_length=0"),
        ({"no_repeat_ngram": 3}, r"no_repeat_ngram=3 and brackets"),
        ({"suppress": (7,)}, r"suppress forbids what every tree needs"),
        ({"suppress": (4, 5, 6)}, r"suppress forbids what every tree needs"),
        ({"brackets": {"words": [3]}}, r"brackets=\{'words': \[3\]\} cannot work"),
    ],
)
def test_options_that_leave_no_tree_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        DecodingOptions(**{"brackets": make_brackets(3)} | options)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"closings": (7,)}, r"3 openings, 1 closings and 2 leaves"),
        ({"leaves": (4, 9, 10)}, r"two meanings"),
        ({"words": ((9, 11),)}, r"id 11 stands for a word but is no leaf"),
        ({"words": ((9,), ())}, r"a sentence without words"),
        ({"deepest": 0}, r"deepest=0 cannot work"),
    ],
)
def test_brackets_that_cannot_work_are_refused(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_brackets(3, **overrides)
