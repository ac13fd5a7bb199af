"""The fast engine: a model compiled for CTranslate2, int8 on the CPU, without PyTorch."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from transduce.decoding import DecodingOptions, Hypothesis
from transduce.decoding.penalty import length_penalty
from transduce.engines.engine import Engine
from transduce.errors import BundleError
from transduce.text import Vocabularies
from transduce.text.tokenizer import EOS, UNKNOWN

__all__ = ["CTranslate2Engine"]

BATCH = 32
"""Sentences that a worker decodes at once: many small batches beat few large ones."""
PLAIN = DecodingOptions()


class CTranslate2Engine:
    """Runs a compiled model on all cores, a worker each.

    Beam search, n-best, length limits, suppressed tokens and every length penalty mean what they mean elsewhere: all
    hypotheses of the beam are asked for without penalty and ranked here. CTranslate2 ends a search when as many
    hypotheses as the beam are complete, where ours goes on while one can still win; a test measures how rarely that
    matters. What it cannot do the same way (sampling, prefixes, repetition guards, output at the length limit) goes to
    `fallback`.
    """

    def __init__(self, path: Path, vocabularies: Vocabularies, fallback: Callable[[], Engine]) -> None:
        import ctranslate2

        self._source_pieces = vocabularies.source.all_pieces()
        self._target_pieces = vocabularies.target.all_pieces()
        self._target_ids = {piece: index for index, piece in enumerate(self._target_pieces)}
        self._fallback = fallback
        try:
            self._translator = ctranslate2.Translator(
                str(path), device="cpu", inter_threads=os.cpu_count() or 1, intra_threads=1
            )
        except (RuntimeError, ValueError) as error:
            raise BundleError("the compiled model is damaged.", where=str(path), remedy="Delete it.") from error

    def decode(self, sources: Sequence[Sequence[int]], options: DecodingOptions) -> list[list[Hypothesis]]:
        """For each source (ids without end of sentence) its hypotheses, best first."""
        if not sources:
            return []
        if not _is_plain(options):
            return self._fallback().decode(sources, options)
        limits = [options.max_length(len(source) + 1) for source in sources]
        results = self._translator.translate_batch(
            [[self._source_pieces[token] for token in (*source, EOS)] for source in sources],
            beam_size=options.beam,
            num_hypotheses=options.beam,
            length_penalty=0,
            max_batch_size=BATCH,
            max_input_length=0,
            max_decoding_length=max(limits),
            min_decoding_length=options.min_length,
            disable_unk=UNKNOWN in options.suppress,
            suppress_sequences=[[self._target_pieces[token]] for token in options.suppress if token != UNKNOWN] or None,
            return_scores=True,
        )
        ranked = [self._ranked(result.hypotheses, result.scores, options) for result in results]
        # Whoever comes near its own limit may have been cut at the longest one's: such sentences are rare.
        cut = [i for i, found in enumerate(ranked) if any(len(each.tokens) >= limits[i] for each in found)]
        if cut:
            again = self._fallback().decode([sources[index] for index in cut], options)
            for index, hypotheses in zip(cut, again, strict=True):
                ranked[index] = hypotheses
        return ranked

    def _ranked(self, texts: list[list[str]], totals: list[float], options: DecodingOptions) -> list[Hypothesis]:
        hypotheses = []
        for pieces, total in zip(texts, totals, strict=True):
            tokens = [*(self._target_ids[piece] for piece in pieces), EOS]
            hypotheses.append(Hypothesis(tokens, total / length_penalty(float(len(tokens)), options), total, []))
        return sorted(hypotheses, key=lambda each: -each.score)[: options.n_best]


def _is_plain(options: DecodingOptions) -> bool:
    """Whether only options are used that mean the same here."""
    others = ("prefix", "sampling", "no_repeat_ngram", "repetition_penalty")
    return all(getattr(options, name) == getattr(PLAIN, name) for name in others)
