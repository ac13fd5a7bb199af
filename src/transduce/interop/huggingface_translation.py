"""An exported translator as `transformers` runs it, to be compared with ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transduce.errors import ConfigError
from transduce.interop.huggingface_directory import LONGEST, Counterpart
from transduce.text.sentences import segments
from transduce.text.tokenizer import EOS
from transduce.translation import Translation

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["COMPARED", "HuggingFaceTranslator", "loaded"]

COMPARED: dict[str, Any] = {
    "length_penalty": "power", "max_length_ratio": 0.0, "max_length_extra": LONGEST, "guard": False,
}  # fmt: skip
"""What `generate` is asked for, in our words; beam and α are the model's."""
BATCH = 32


def loaded(path: Path, *names: str) -> list[Any]:
    """What classes of `transformers` load from a directory, which is not asked for anywhere else."""
    try:
        import transformers
    except ImportError as error:
        raise ConfigError(
            "`transformers`, which would prove the export, is not installed.",
            remedy='Run: pip install "transduce[huggingface]"; or leave out the proof: --no-verify.',
        ) from error
    import warnings

    said: Any = transformers.utils.logging
    said.set_verbosity_error()
    said.disable_progress_bar()
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it recommends sacremoses, which would change texts
        for name in names:
            each = getattr(transformers, name).from_pretrained(str(path), local_files_only=True)
            found.append(each.eval() if hasattr(each, "eval") else each)
    return found


class HuggingFaceTranslator:
    """A directory that translates as `transformers` has it do."""

    def __init__(self, path: Path, counterpart: Counterpart, beam: int, alpha: float) -> None:
        self._tokenizer, self._model = loaded(path, "AutoTokenizer", "AutoModelForSeq2SeqLM")
        self._numbering, self._marian = counterpart.numbering, counterpart.vocabulary is None
        generation = counterpart.generation()
        self._pad, self._longest = generation["pad_token_id"], generation["max_length"] - 1
        self._language, self._beam, self._alpha = counterpart.bundle.config.source_language, beam, alpha

    def translate(self, text: Sequence[str], to: str | None = None, **options: Any) -> list[Translation]:
        """Translate texts sentence by sentence; `options` are those of the directory, whatever is asked for."""
        cut = [segments(each, self._language) for each in text]
        found = iter(
            self._translated([self._asked(part.sentence, to) for parts in cut for part in parts if part.sentence])
        )
        translations = []
        for parts in cut:
            done = [(*next(found), part.space) if part.sentence else ("", 0.0, part.space) for part in parts]
            translations.append(Translation("".join(a + space for a, _, space in done), sum(b for _, b, _ in done)))
        return translations

    def greedy_logits(
        self, sources: Sequence[Sequence[int]], start: Sequence[int] = ()
    ) -> list[tuple[list[int], Tensor]]:
        """What the model writes of each source with beam 1, and the logits [T,V] of each step, with our ids."""
        import torch

        found = []
        for source in sources:
            ids = torch.tensor([self._numbering.source([*source, EOS])])
            written = self._generated(ids, num_beams=1, output_logits=True)
            tokens = self._numbering.ours(written.sequences[0, 1 + len(start) :].tolist())
            found.append((tokens, self._numbering.columns(torch.cat(written.logits[len(start) :]))))
        return found

    def same_ids(self, texts: Sequence[str], ours: Sequence[Sequence[int]], to: str | None) -> int:
        """How many texts its tokenizer gives our ids to, which are without their end."""
        rows = [self._numbering.source([*row, EOS]) for row in ours]
        found = [self._tokenizer(self._asked(text, to)).input_ids for text in texts]
        return sum(map(list.__eq__, found, rows))

    def _asked(self, sentence: str, to: str | None) -> str:
        """A sentence that is to become a language: Marian's tokenizer is told by a tag before it."""
        return f">>{to}<<{sentence}" if to is not None and self._marian else sentence

    def _translated(self, sentences: list[str]) -> list[tuple[str, float]]:
        order = sorted(range(len(sentences)), key=lambda place: len(sentences[place]))
        found: dict[int, tuple[str, float]] = {}
        for start in range(0, len(order), BATCH):
            places = order[start : start + BATCH]
            batch = self._tokenizer([sentences[place] for place in places], return_tensors="pt", padding=True)
            written = self._generated(batch.input_ids, num_beams=self._beam, output_scores=True)
            decoded = self._tokenizer.batch_decode(written.sequences, skip_special_tokens=True)
            texts = [text.strip() for text in decoded]  # as ours are: a first word may begin with its space
            scores = written.sequences_scores.tolist() if self._beam > 1 else [0.0] * len(places)
            found |= zip(places, zip(texts, scores, strict=True), strict=True)
        return [found[place] for place in range(len(sentences))]

    def _generated(self, ids: Tensor, num_beams: int, **wanted: Any) -> Any:
        beams: Mapping[str, Any] = {"length_penalty": self._alpha} if num_beams > 1 else {"early_stopping": None}
        return self._model.generate(
            input_ids=ids, attention_mask=(ids != self._pad).long(), num_beams=num_beams, max_new_tokens=self._longest,
            do_sample=False, return_dict_in_generate=True, max_length=None, **beams, **wanted,
        )  # fmt: skip
