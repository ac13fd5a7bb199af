"""Small tokenisers of others, learned here and saved by `transformers`, as their models' directories hold them."""

from __future__ import annotations

import json
import os
import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["HF_HUB_OFFLINE"] = "1"

SUBJECTS, VERBS = ("We", "They", "Kofi and Ama", "Nobody"), ("painted", "understand", "repaired", "will find")
LINES = [
    f"{subject} {verb} the {thing}{mark}"
    for subject in SUBJECTS
    for verb in VERBS
    for thing in ("house", "bicycles", "question", "café", "Straße")
    for mark in (".", "!", "?", ", 12 or 7")
]
OTHER_LINES = [
    f"{subject} {verb} {thing}{mark}"
    for subject in ("Nous", "Ils", "Kofi et Ama", "Personne")
    for verb in ("peignons", "comprennent", "répare", "trouvera")
    for thing in ("la maison", "les vélos", "la question")
    for mark in (".", " !", " ?")
]

SaveTokenizer = Callable[[str, Path], Any]


def learn(path: Path, lines: list[str], size: int = 150, kind: str = "unigram", **options: Any) -> None:
    """A SentencePiece model of its own making, as a file."""
    with path.open("wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=file,
            vocab_size=size,
            model_type=kind,
            minloglevel=2,
            hard_vocab_limit=False,
            **options,
        )


def pieces(path: Path) -> list[str]:
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return [processor.id_to_piece(index) for index in range(processor.get_piece_size())]


def marian(
    directory: Path,
    codes: tuple[str, ...] = (),
    texts: tuple[list[str], list[str]] = (LINES, OTHER_LINES),
    size: int = 120,
    **options: Any,
) -> Any:
    """Two SentencePiece models and one numbering of both."""
    from transformers import MarianTokenizer

    for side, lines in zip(("source", "target"), texts, strict=True):
        learn(directory / f"{side}.spm", lines, size, **options)
    known = {piece for side in ("source", "target") for piece in pieces(directory / f"{side}.spm")}
    names = ["</s>", "<unk>", *sorted(known - {"<s>", "</s>", "<unk>"}), *codes, "<pad>"]
    (directory / "vocab.json").write_text(json.dumps({name: index for index, name in enumerate(names)}))
    files = [str(directory / name) for name in ("source.spm", "target.spm", "vocab.json")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it recommends another package
        tokenizer = MarianTokenizer(*files, source_lang="en", target_lang="fr")
    tokenizer.save_pretrained(directory)
    return tokenizer


def small_marian(directory: Path) -> Any:
    """Whose files are small, without the tables that normalise a text."""
    return marian(directory, size=60, normalization_rule_name="identity")


def marian_to_several(directory: Path) -> Any:
    """With codes of the languages that it can write."""
    return marian(directory, (">>fra<<", ">>twi<<"))


def m2m(directory: Path) -> Any:
    from transformers import M2M100Tokenizer

    learn(directory / "sentencepiece.bpe.model", LINES + OTHER_LINES)
    names = ["<s>", "<pad>", "</s>", "<unk>", *pieces(directory / "sentencepiece.bpe.model")[3:]]
    (directory / "vocab.json").write_text(json.dumps({name: index for index, name in enumerate(names)}))
    files = [str(directory / name) for name in ("vocab.json", "sentencepiece.bpe.model")]
    tokenizer = M2M100Tokenizer(*files, src_lang="en", tgt_lang="fr")
    tokenizer.save_pretrained(directory)
    return tokenizer


def _from_sentencepiece(directory: Path, class_name: str, name: str, model: dict[str, Any], **options: Any) -> Any:
    import transformers

    made = directory / "made"
    made.mkdir()
    learn(made / name, LINES + OTHER_LINES, **model)
    tokenizer = getattr(transformers, class_name).from_pretrained(made, **options)
    tokenizer.save_pretrained(directory)
    return tokenizer


def nllb(directory: Path) -> Any:
    """NLLB's: a tokenizer.json whose language codes are added tokens."""
    from transformers import AddedToken

    tokenizer = _from_sentencepiece(directory, "NllbTokenizer", "sentencepiece.bpe.model", {"kind": "bpe"})
    codes = ["eng_Latn", "fra_Latn", "twi_Latn"]
    tokenizer.add_tokens([AddedToken(code, special=True, normalized=False) for code in codes], special_tokens=True)
    tokenizer.src_lang, tokenizer.tgt_lang = "eng_Latn", "fra_Latn"
    tokenizer.save_pretrained(directory)
    return tokenizer


def mbart50(directory: Path) -> Any:
    languages = {"src_lang": "en_XX", "tgt_lang": "fr_XX"}
    return _from_sentencepiece(directory, "MBart50Tokenizer", "sentencepiece.bpe.model", {}, **languages)


def mbart(directory: Path) -> Any:
    languages = {"src_lang": "en_XX", "tgt_lang": "fr_XX"}
    return _from_sentencepiece(directory, "MBartTokenizer", "sentencepiece.bpe.model", {}, **languages)


def t5(directory: Path) -> Any:
    ids = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
    return _from_sentencepiece(directory, "T5Tokenizer", "spiece.model", ids, extra_ids=7)


def _byte_level(directory: Path, class_name: str, special: list[str]) -> Any:
    import transformers
    from tokenizers import ByteLevelBPETokenizer

    learned = ByteLevelBPETokenizer()
    learned.train_from_iterator(LINES + OTHER_LINES, vocab_size=400, special_tokens=special, show_progress=False)
    vocab, merges = json.loads(learned.to_str())["model"]["vocab"], json.loads(learned.to_str())["model"]["merges"]
    tokenizer = getattr(transformers, class_name)(vocab=vocab, merges=[tuple(each) for each in merges])
    tokenizer.save_pretrained(directory)
    return tokenizer


def bart(directory: Path) -> Any:
    return _byte_level(directory, "BartTokenizer", ["<s>", "<pad>", "</s>", "<unk>", "<mask>"])


def gpt2(directory: Path) -> Any:
    return _byte_level(directory, "GPT2Tokenizer", ["<|endoftext|>"])


def bert(directory: Path) -> Any:
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertTokenizer

    learned = BertWordPieceTokenizer()
    learned.train_from_iterator(LINES + OTHER_LINES, vocab_size=200, show_progress=False)
    tokenizer = BertTokenizer(vocab=learned.get_vocab())
    tokenizer.save_pretrained(directory)
    return tokenizer


MAKERS = {
    each.__name__: each
    for each in (marian, small_marian, marian_to_several, m2m, nllb, mbart50, mbart, t5, bart, gpt2, bert)
}


@pytest.fixture(scope="session")
def save_tokenizer() -> SaveTokenizer:
    """Learns a small tokenizer of a kind, saves it into a directory as `transformers` does, and gives theirs."""
    return lambda kind, directory: MAKERS[kind](directory)


SOURCE = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
TARGET = ["un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix"]


@dataclass(frozen=True)
class Trained:
    """A model of theirs that has learned to translate, in a directory as it would be downloaded."""

    directory: Path
    tokenizer: Any
    model: Any
    sources: list[str]
    """Sentences that it has not learned from."""
    references: list[str]

    def generate(self, texts: list[str], **options: Any) -> list[str]:
        batch = self.tokenizer(texts, return_tensors="pt", padding=True)
        written = self.model.generate(**batch, **options)
        return [str(self.tokenizer.decode(row, skip_special_tokens=True)) for row in written]


@pytest.fixture(scope="session")
def trained_marian(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A MarianMT model that translates numbers word by word, trained here by `transformers` in seconds."""
    import torch
    from transformers import MarianConfig, MarianMTModel

    directory = tmp_path_factory.mktemp("opus-mt-en-fr")
    generator = random.Random(0)
    rows = [[generator.randrange(10) for _ in range(generator.randrange(2, 6))] for _ in range(700)]
    sources, targets = ([" ".join(side[number] for number in row) for row in rows] for side in (SOURCE, TARGET))
    tokenizer = marian(directory, texts=(sources, targets), size=80)
    torch.manual_seed(0)
    config = MarianConfig(
        vocab_size=len(tokenizer), decoder_vocab_size=len(tokenizer), d_model=64, encoder_layers=1, decoder_layers=1,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, dropout=0.0,
        pad_token_id=tokenizer.pad_token_id, decoder_start_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id, forced_eos_token_id=tokenizer.eos_token_id, scale_embedding=True,
        activation_function="swish", num_beams=4, max_length=40, bad_words_ids=[[tokenizer.pad_token_id]],
    )  # fmt: skip
    model = MarianMTModel(config)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.004)
    model.train()
    for _ in range(180):
        chosen = generator.sample(range(600), 48)
        batch = tokenizer([sources[index] for index in chosen], return_tensors="pt", padding=True)
        labels = tokenizer(text_target=[targets[i] for i in chosen], return_tensors="pt", padding=True)["input_ids"]
        labels[labels == tokenizer.pad_token_id] = -100
        optimiser.zero_grad()
        model(**batch, labels=labels).loss.backward()
        optimiser.step()
    model.eval().save_pretrained(directory)
    (directory / "README.md").write_text("---\nlanguage: en\nlicense: apache-2.0\n---\n# opus-mt-en-fr\n")
    return Trained(directory, tokenizer, model, sources[600:], targets[600:])
