"""Both engines behind one protocol: the same options mean the same, and the fast one needs no PyTorch."""

from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch

from transduce.bundle import Bundle, BundleConfig, find_model
from transduce.decoding import DecodingOptions
from transduce.engines import ctranslate2_engine
from transduce.engines.ctranslate2_engine import POSITIONS, CTranslate2Engine
from transduce.engines.engine import Engine
from transduce.engines.torch_engine import TorchEngine
from transduce.errors import BundleError
from transduce.interop.ctranslate2 import compile_model
from transduce.model import Transformer, TransformerConfig
from transduce.text import Tokenizer, Vocabularies
from transduce.text.tokenizer import EOS
from transduce.translator import Translator

LINES = [
    f"{a} {b} {c}" for a in ("red", "green", "blue") for b in ("bird", "horse", "house") for c in ("sings", "runs")
]


def make_model(tmp_path: Path, end_bonus: float = 0.0) -> Path:
    """A random model, compiled in float32; a bonus on the end of sentence makes it end soon."""
    torch.manual_seed(5)
    tokenizer = Tokenizer.learn(LINES, 300)
    config = TransformerConfig.tiny(tokenizer.size, d_model=32, d_ff=64, heads=4, tying="none", dropout=0.0)
    model = Transformer(config).eval()
    with torch.no_grad():
        model.projection.weight *= 4
        last: Any = model.decoder.layers[-1]
        last.feedforward_residual.norm.bias.fill_(end_bonus)  # a constant direction of the decoder's output …
        model.projection.weight[EOS] += end_bonus  # … that speaks for the end
    weights = {name: value.detach() for name, value in model.named_parameters()}
    vocabularies = Vocabularies(tokenizer, tokenizer)
    bundle = Bundle.write(tmp_path / "m", BundleConfig(architecture=asdict(config)), weights, vocabularies, {}, "card")
    compile_model(bundle.model(), vocabularies, bundle.path / "ctranslate2", "float32")
    return bundle.path


def make_polyglot(tmp_path: Path) -> Path:
    """A random model with a vocabulary for each side and two target languages, compiled in float32."""
    torch.manual_seed(5)
    pairs = [(line, " ".join(reversed(line.upper().split()))) for line in LINES]
    vocabularies = Vocabularies.learn(pairs, 300, shared=False, languages=["de", "fr"])
    sizes = {"target_vocab_size": vocabularies.target.size, "tying": "none", "dropout": 0.0}
    config = TransformerConfig.tiny(vocabularies.source.size, d_model=32, d_ff=64, heads=4, **sizes)
    model = Transformer(config).eval()
    with torch.no_grad():
        model.projection.weight *= 4
        model.source_embedding.tokens.weight[vocabularies.source.tags] *= 30
    weights = {name: value.detach() for name, value in model.named_parameters()}
    described = BundleConfig(architecture=asdict(config), target_language="de", target_languages=["de", "fr"])
    bundle = Bundle.write(tmp_path / "polyglot", described, weights, vocabularies, {}, "card")
    compile_model(bundle.model(), vocabularies, bundle.path / "ctranslate2", "float32")
    return bundle.path


def test_both_engines_write_the_language_asked_for_in_its_own_vocabulary(tmp_path: Path) -> None:
    path = make_polyglot(tmp_path)
    fast, plain = Translator.load(path), Translator.load(path, engine="torch")
    assert isinstance(fast.engine, CTranslate2Engine)
    short = {"beam": 1, "max_length_ratio": 0, "max_length_extra": 12, "guard": False}
    for to in ("de", "fr"):
        ours, theirs = ([each.text for each in one.translate(LINES, to, **short)] for one in (plain, fast))
        same = sum(one == other for one, other in zip(ours, theirs, strict=True))
        assert same >= 0.9 * len(LINES)
    german, french = ([each.text for each in fast.translate(LINES, to, **short)] for to in ("de", "fr"))
    assert german != french


@pytest.fixture
def model_path(tmp_path: Path) -> Path:
    return make_model(tmp_path)


@pytest.mark.parametrize(
    "options",
    [
        {"beam": 1},
        {"beam": 4, "length_penalty": "none"},
        {"beam": 4, "n_best": 3},
        {"beam": 4, "length_penalty": "power", "alpha": 1.0},
        {"beam": 2, "min_length": 5},
        {"beam": 4, "suppress": (0, 1, 3)},
        {"beam": 4, "no_repeat_ngram": 2},
        {"sampling": True, "seed": 4},
        {"beam": 2, "prefix": (270,)},
        {"beam": 2, "max_length_ratio": 0, "max_length_extra": 4},
    ],
    ids=str,
)
def test_options_mean_the_same_on_both_engines(model_path: Path, options: dict[str, Any]) -> None:
    bundle = Bundle.open(model_path)
    torch_engine = TorchEngine(bundle.model())
    vocabularies = bundle.vocabularies()
    fast = CTranslate2Engine(model_path / "ctranslate2", vocabularies, fallback=lambda: torch_engine)
    chosen = DecodingOptions(**{"max_length_ratio": 0, "max_length_extra": 15, **options})
    sources = vocabularies.source.encode_batch(LINES)
    ours, theirs = torch_engine.decode(sources, chosen), fast.decode(sources, chosen)
    same = 0
    for our_list, their_list in zip(ours, theirs, strict=True):
        assert len(our_list) == len(their_list) == chosen.n_best
        if [each.tokens for each in our_list] == [each.tokens for each in their_list]:
            same += 1
            for our, their in zip(our_list, their_list, strict=True):
                assert their.score == pytest.approx(our.score, abs=0.02)
                assert their.log_probability == pytest.approx(our.log_probability, abs=0.05)
        else:  # searches end differently: CTranslate2 when the beam is full, ours when nothing better can come
            assert our_list[0].score >= their_list[0].score - 0.02
    assert same >= 0.5 * len(sources)


def test_texts_beyond_the_compiled_positions_are_decoded_by_the_other_engine(model_path: Path) -> None:
    bundle = Bundle.open(model_path)
    torch_engine = TorchEngine(bundle.model())
    fast = CTranslate2Engine(model_path / "ctranslate2", bundle.vocabularies(), fallback=lambda: torch_engine)
    short, long = [270, 275, 280], [270 + index % 20 for index in range(POSITIONS)]
    for options in (
        DecodingOptions(beam=1, max_length_ratio=0, max_length_extra=8),
        DecodingOptions(beam=1, max_length_ratio=0, max_length_extra=POSITIONS + 20),
    ):
        ours, theirs = (each.decode([short, long, long[:-1]], options) for each in (torch_engine, fast))
        assert [best.tokens for (best,) in theirs] == [best.tokens for (best,) in ours]


def test_in_a_hurry_what_comes_to_its_limit_is_left_as_it_stands(model_path: Path) -> None:
    bundle = Bundle.open(model_path)
    vocabularies = bundle.vocabularies()
    fast = CTranslate2Engine(model_path / "ctranslate2", vocabularies, no_fallback, workers=2, hurried=True)
    options = DecodingOptions(beam=2, n_best=2, max_length_ratio=1.0, max_length_extra=1, suppress=(EOS,))
    sources = [[270, 275, 280], [270 + index for index in range(12)]]
    for source, hypotheses in zip(sources, fast.decode(sources, options), strict=True):
        assert len(hypotheses) == 2
        assert {len(each.tokens) for each in hypotheses} == {options.max_length(len(source) + 1)}
        assert all(each.tokens[-1] == EOS for each in hypotheses)
        assert hypotheses[0].score >= hypotheses[1].score
    usual = DecodingOptions(beam=2, max_length_extra=200)
    plain = CTranslate2Engine(find_model("en-de") / "ctranslate2", *_of("en-de"))
    quick = CTranslate2Engine(find_model("en-de") / "ctranslate2", *_of("en-de"), hurried=True)
    texts = _of("en-de")[0].source.encode_batch(["Where is the station?", "I am tired."])
    assert [best.tokens for (best,) in quick.decode(texts, usual)] == [
        best.tokens for (best,) in plain.decode(texts, usual)
    ]


def _of(model: str) -> tuple[Vocabularies, Any]:
    return Bundle.open(find_model(model)).vocabularies(), no_fallback


@pytest.mark.parametrize("most", [1, 20, 512])
def test_order_and_batches_change_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, most: int) -> None:
    bundle = Bundle.open(find_model("en-de"))
    vocabularies = bundle.vocabularies()
    # In int8, a difference in the last digit of a float can be one of a whole step.
    compile_model(bundle.model(), vocabularies, tmp_path / "float32", "float32")
    fast = CTranslate2Engine(tmp_path / "float32", vocabularies, fallback=no_fallback)
    texts = [f"{subject} will {verb} the {thing}." for subject in ("We", "My sister") for verb in ("buy", "sell", "see")
             for thing in ("house", "new car", "doctor in the hospital next week")]  # fmt: skip
    sources = vocabularies.source.encode_batch(texts)
    options = DecodingOptions(beam=2)
    alone = [fast.decode([source], options)[0][0] for source in sources]
    monkeypatch.setattr(ctranslate2_engine, "BATCH_TOKENS", most)
    order = random.Random(3).sample(range(len(sources)), len(sources))
    first, second = (fast.begin([sources[index] for index in part], options) for part in (order[:9], order[9:]))
    later, sooner = second(), first()  # in whatever order they are asked for
    together = [best for (best,) in sooner + later]
    assert [best.tokens for best in together] == [alone[index].tokens for index in order]
    assert [best.score for best in together] == pytest.approx([alone[index].score for index in order], abs=1e-4)
    assert len({tuple(best.tokens) for best in together}) > 12  # or it could not have told their order
    assert fast.decode([], options) == []


def no_fallback() -> Engine:
    raise AssertionError("decoded with PyTorch")


def test_the_engine_is_chosen_by_what_the_model_has(model_path: Path) -> None:
    assert isinstance(Translator.load(model_path).engine, CTranslate2Engine)
    assert isinstance(Translator.load(model_path, engine="torch").engine, TorchEngine)
    (model_path / "ctranslate2" / "model.bin").write_bytes(b"damaged")
    with pytest.raises(BundleError, match=r"compiled model is damaged"):
        Translator.load(model_path)
    for file in (model_path / "ctranslate2").iterdir():
        file.unlink()
    (model_path / "ctranslate2").rmdir()
    assert isinstance(Translator.load(model_path).engine, TorchEngine)
    with pytest.raises(BundleError, match=r"not compiled for CTranslate2.*transduce export"):
        Translator.load(model_path, engine="ctranslate2")


def test_translating_with_a_compiled_model_imports_no_torch(tmp_path: Path) -> None:
    model_path = make_model(tmp_path, end_bonus=1.0)  # so that no sentence runs to its limit
    code = (
        "import sys; from transduce.cli.main import main\n"
        f"sys.argv = ['transduce', 'translate', '-m', {str(model_path)!r}, 'red bird sings']\n"
        "try:\n    main()\n"
        "except SystemExit:\n    pass\n"
        "print(sorted({'torch', 'numpy', 'sacrebleu', 'fastapi'} & set(sys.modules)))\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "[]"
