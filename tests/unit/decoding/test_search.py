"""Search against plain re-implementations: greedy by argmax, and enumeration of everything that can be written."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.decoding import DecodingOptions, Hypothesis, decode, score
from transduce.model import Transformer, TransformerConfig

EOS = 2


def greedy(model: Transformer, source: torch.Tensor, limit: int) -> list[int]:
    """Argmax until the end of sentence, without cache and without batch; the limit forces the end."""
    written: list[int] = []
    while EOS not in written:
        logits = model(source[None], torch.tensor([[model.bos_id, *written]]))[0, -1]
        written.append(int(logits.argmax()) if len(written) + 1 < limit else EOS)
    return written


def everything(vocabulary: int, limit: int, prefix: tuple[int, ...] = ()) -> Iterator[list[int]]:
    """All outputs of at most `limit` tokens that end in the end of sentence and nowhere before."""
    others = [token for token in range(vocabulary) if token != EOS]
    for length in range(limit - len(prefix)):
        for middle in itertools.product(others, repeat=length):
            yield [*prefix, *middle, EOS]


def log_probabilities(model: Transformer, source: torch.Tensor, outputs: list[list[int]]) -> list[float]:
    """By the plain forward pass, all outputs of a length at once; `outputs` must come by length."""
    results: list[float] = []
    for _, group in itertools.groupby(outputs, key=len):
        tokens = torch.tensor(list(group))
        inputs = torch.cat((torch.full_like(tokens[:, :1], model.bos_id), tokens[:, :-1]), dim=1)
        with torch.no_grad():
            logits = model(source.expand(len(tokens), -1), inputs)
        results += logits.double().log_softmax(-1).gather(-1, tokens.unsqueeze(-1)).sum((1, 2)).tolist()
    return results


def penalty(length: int, kind: str, alpha: float) -> float:
    return {"gnmt": ((5 + length) / 6) ** alpha, "power": length**alpha, "none": 1.0}[kind]


def make_tiny(seed: int, vocabulary: int, sharpness: float) -> Transformer:
    """A random model over a few tokens; `sharpness` decides between nearly uniform and nearly certain output."""
    torch.manual_seed(seed)
    config = TransformerConfig.tiny(
        vocabulary, d_model=8, d_ff=16, heads=2, encoder_layers=1, decoder_layers=1, tying="none"
    )
    model = Transformer(config).eval()
    with torch.no_grad():
        model.projection.weight *= sharpness
    return model


@pytest.mark.parametrize("overrides", [{}, {"norm_position": "pre", "positions": "rotary"}, {"tying": "all"}])
def test_beam_1_is_greedy(make_model: Callable[..., Transformer], source_ids: torch.Tensor, overrides: Any) -> None:
    model = make_model(**overrides)
    for (best,), source, length in zip(
        decode(model, source_ids, DecodingOptions(beam=1)), source_ids, (7, 5, 1), strict=True
    ):
        assert best.tokens == greedy(model, source, limit=length + 50)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    vocabulary=st.integers(4, 5),
    limit=st.integers(1, 4),
    sharpness=st.sampled_from([0.3, 3.0, 20.0]),
    kind=st.sampled_from(["gnmt", "power", "none"]),
    alpha=st.sampled_from([-0.5, 0.0, 0.6, 1.5]),
    n_best=st.integers(1, 4),
)
def test_a_wide_beam_is_exhaustive_search(
    seed: int, vocabulary: int, limit: int, sharpness: float, kind: Any, alpha: float, n_best: int
) -> None:
    model = make_tiny(seed, vocabulary, sharpness)
    sources = torch.randint(3, vocabulary, (2, 3))
    options = DecodingOptions(
        beam=vocabulary**limit,
        n_best=n_best,
        length_penalty=kind,
        alpha=alpha,
        max_length_ratio=0,
        max_length_extra=limit,
    )
    for found, source in zip(decode(model, sources, options), sources, strict=True):
        outputs = list(everything(vocabulary, limit))
        scores = {
            tuple(tokens): value / penalty(len(tokens), kind, alpha)
            for tokens, value in zip(outputs, log_probabilities(model, source, outputs), strict=True)
        }
        best = sorted(scores.values(), reverse=True)[:n_best]
        assert [hypothesis.score for hypothesis in found] == pytest.approx(best, abs=1e-4)
        for hypothesis in found:
            assert hypothesis.score == pytest.approx(scores[tuple(hypothesis.tokens)], abs=1e-4)
        assert len({tuple(hypothesis.tokens) for hypothesis in found}) == len(found)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    sharpness=st.sampled_from([0.5, 5.0]),
    prefix=st.lists(st.sampled_from([0, 1, 3, 4]), max_size=2),
    min_length=st.integers(0, 2),
    suppress=st.sampled_from([(), (0, 1), (3,)]),
    no_repeat=st.integers(0, 2),
)
def test_constraints_are_those_of_filtered_exhaustive_search(
    seed: int, sharpness: float, prefix: list[int], min_length: int, suppress: tuple[int, ...], no_repeat: int
) -> None:
    model, limit = make_tiny(seed, 5, sharpness), 4
    source = torch.randint(3, 5, (1, 3))
    options = DecodingOptions(
        beam=5**limit, max_length_ratio=0, max_length_extra=limit,
        prefix=prefix, min_length=min_length, suppress=suppress, no_repeat_ngram=no_repeat,
    )  # fmt: skip

    def legal(tokens: list[int]) -> bool:
        free = tokens[len(prefix) : -1]
        ngrams = [tuple(tokens[i : i + no_repeat]) for i in range(len(tokens) - no_repeat + 1)] if no_repeat else []
        new = [gram for i, gram in enumerate(ngrams) if i + no_repeat > len(prefix) and gram in ngrams[:i]]
        return not set(free) & set(suppress) and not new and len(tokens) > min(min_length, limit - 1)

    outputs = [tokens for tokens in everything(5, limit, tuple(prefix)) if legal(tokens)]
    values = log_probabilities(model, source[0], outputs)
    expected = max(v / penalty(len(tokens), "gnmt", 0.6) for tokens, v in zip(outputs, values, strict=True))
    ((best,),) = decode(model, source, options)
    assert legal(best.tokens)
    assert best.tokens[: len(prefix)] == prefix
    assert best.score == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        DecodingOptions(),
        DecodingOptions(beam=1),
        DecodingOptions(beam=6, n_best=6, length_penalty="power", alpha=1.0),
        DecodingOptions(length_penalty="none"),
        DecodingOptions(beam=3, prefix=[[4, 5], [6], []]),
        DecodingOptions(min_length=9, no_repeat_ngram=2, suppress=[0, 1]),
        DecodingOptions(sampling=True, n_best=4, seed=5, temperature=0.7, top_k=8, top_p=0.9),
    ],
    ids=["paper", "greedy", "n-best power", "no penalty", "prefixes", "guards", "sampling"],
)
def test_the_score_found_is_the_score_of_the_tokens(
    model: Transformer, source_ids: torch.Tensor, options: DecodingOptions
) -> None:
    for index, hypotheses in enumerate(decode(model, source_ids, options)):
        assert len(hypotheses) == options.n_best
        assert hypotheses == sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)
        for hypothesis in hypotheses:
            (forced,) = score(model, source_ids[index : index + 1], [hypothesis.tokens], options)
            assert forced.score == pytest.approx(hypothesis.score, abs=1e-4)
            assert forced.token_scores == pytest.approx(hypothesis.token_scores, abs=1e-4)
            plain = log_probabilities(model, source_ids[index, : (7, 5, 1)[index]], [hypothesis.tokens])
            assert [forced.log_probability] == pytest.approx(plain, abs=1e-4)


@pytest.mark.parametrize("options", [DecodingOptions(n_best=3), DecodingOptions(sampling=True, n_best=3, seed=1)])
def test_what_is_found_does_not_depend_on_the_batch(
    model: Transformer, source_ids: torch.Tensor, options: DecodingOptions
) -> None:
    together = decode(model, source_ids, options)
    reversed_order = decode(model, source_ids.flip(0), options)[::-1]
    alone = [decode(model, source_ids[i : i + 1, :length], options)[0] for i, length in enumerate((7, 5, 1))]

    def tokens(results: list[list[Hypothesis]]) -> list[list[list[int]]]:
        return [[hypothesis.tokens for hypothesis in hypotheses] for hypotheses in results]

    assert tokens(together) == tokens(alone) == tokens(reversed_order)


def test_search_goes_on_while_a_live_hypothesis_can_still_win(scripted: type[Any]) -> None:
    """Both short hypotheses are finished when the long one is not; with the penalty, the long one wins."""
    table = {
        (): {EOS: 0.4, 3: 0.35, 4: 0.25},
        (3,): {EOS: 0.9, 4: 0.1},
        (4,): {4: 1.0},
        (4, 4): {4: 1.0},
        (4, 4, 4): {4: 1.0},
    }
    options = DecodingOptions(beam=2, length_penalty="power", alpha=1.0, max_length_ratio=0, max_length_extra=10)
    ((best,),) = decode(scripted(table), torch.tensor([[3]]), options)
    assert best.tokens == [4, 4, 4, 4, EOS]
    assert best.score == pytest.approx(torch.tensor(0.25).log().item() / 5)


def test_search_stops_as_soon_as_no_live_hypothesis_can_win(scripted: type[Any]) -> None:
    """Without a penalty a finished hypothesis of 0.6 cannot be beaten by live ones of 0.4 and less."""
    table: dict[tuple[int, ...], dict[int, float]] = {(): {EOS: 0.6, 3: 0.4}}
    for length in range(1, 9):
        table[(3,) * length] = {3: 1.0}
    stepper = scripted(table)
    options = DecodingOptions(beam=2, length_penalty="none", max_length_ratio=0, max_length_extra=9)
    ((best,),) = decode(stepper, torch.tensor([[3]]), options)
    assert best.tokens == [EOS]
    assert len(stepper.rows) == 1, "one step is enough"
    decode(stepper, torch.tensor([[3]]), options.replace(n_best=2))
    assert len(stepper.rows) == 1 + 9, "the second best is still open"


def test_finished_sentences_leave_the_batch(scripted: type[Any]) -> None:
    class ByLength(scripted):  # type: ignore[misc]
        """Sentence i writes i tokens."""

        def prefill(self, source_ids: torch.Tensor, capacity: int) -> list[tuple[int, ...]]:
            return [(100 * length,) for length in (source_ids != 0).sum(1).tolist()]

    table = {(100 * n, *[3] * t): {3: 1.0} for n in range(1, 4) for t in range(n)}
    stepper = ByLength(table)
    sources = torch.tensor([[5, 0, 0], [5, 5, 5], [5, 5, 0]])
    results = decode(stepper, sources, DecodingOptions(beam=2, length_penalty="none"))
    assert [best.tokens for (best,) in results] == [[3, EOS], [3, 3, 3, EOS], [3, 3, EOS]]
    assert stepper.rows == [3, 6, 4, 2]


def test_the_limit_is_source_times_ratio_plus_extra(scripted: type[Any]) -> None:
    endless = {(3,) * length: {3: 1.0 - 1e-6, EOS: 1e-6} for length in range(60)}
    ((short,), (long,)) = decode(
        scripted(endless), torch.tensor([[5, 0], [5, 5]]), DecodingOptions(max_length_ratio=3.5, max_length_extra=2)
    )
    assert len(short.tokens) == 5
    assert len(long.tokens) == 9
    assert decode(scripted(endless), torch.tensor([[5]]))[0][0].tokens == [3] * 50 + [EOS]


def test_learned_positions_bound_the_output(make_model: Callable[..., Transformer]) -> None:
    model = make_model(positions="learned", max_length=12)
    for (best,) in decode(model, torch.randint(3, 17, (2, 12)), DecodingOptions(suppress=[])):
        assert len(best.tokens) <= 12


def test_a_hypothesis_without_a_legal_way_on_ends(scripted: type[Any]) -> None:
    always = {tuple(path): {3: 0.5, 4: 0.5} for n in range(9) for path in itertools.product((3, 4), repeat=n)}
    ((best,),) = decode(
        scripted(always), torch.tensor([[3]]), DecodingOptions(no_repeat_ngram=1, min_length=8, suppress=[0, 1])
    )
    assert sorted(best.tokens[:-1]) == [3, 4]
    assert best.tokens[-1] == EOS


def test_decoding_is_without_dropout_and_leaves_the_model_as_it_was(make_model: Callable[..., Transformer]) -> None:
    model, source = make_model(dropout=0.5), torch.randint(3, 17, (2, 5))
    expected = decode(model, source)
    model.train()
    model.encoder.eval()
    assert decode(model, source) == expected
    assert model.training
    assert model.decoder.training
    assert not model.encoder.training


def test_an_empty_batch_gives_nothing(model: Transformer) -> None:
    assert decode(model, torch.zeros(0, 5, dtype=torch.long)) == []
    assert score(model, torch.zeros(0, 5, dtype=torch.long), []) == []


def test_the_defaults_are_the_papers() -> None:
    options = DecodingOptions()
    assert (options.beam, options.length_penalty, options.alpha) == (4, "gnmt", 0.6)
    assert options.max_length(source_length=30) == 80
