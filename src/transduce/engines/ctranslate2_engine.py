"""The fast engine: a model compiled for CTranslate2, int8 on the CPU, without PyTorch."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from transduce.decoding import DecodingOptions, Hypothesis
from transduce.decoding.penalty import length_penalty
from transduce.engines.engine import Engine
from transduce.errors import BundleError
from transduce.processes import cores
from transduce.text import Vocabularies
from transduce.text.tokenizer import EOS, UNKNOWN

__all__ = ["POSITIONS", "SHORTLIST", "CTranslate2Engine"]

BATCH_TOKENS = 640
"""Source tokens times beams that a worker decodes at once: many small batches beat few large ones (docs/log.md)."""
SCORED_TOKENS = 1000
"""Tokens that a worker scores at once."""
POSITIONS = 512
"""The longest text of a compiled model, in tokens: CTranslate2 knows the paper's sinusoids only as a table."""
SHORTLIST = "vmap.txt"
"""The file of a compiled model that says which target pieces a source piece can become; the name is CTranslate2's."""
PLAIN = DecodingOptions()


class CTranslate2Engine(Engine):
    """Runs a compiled model on all cores, a worker each.

    Beam search, n-best, length limits, suppressed tokens and every length penalty mean what they mean elsewhere: all
    hypotheses of the beam are asked for without penalty and ranked here. CTranslate2 ends a search when as many
    hypotheses as the beam are complete, where ours goes on while one can still win; a test measures how rarely that
    matters. What it cannot do the same way (sampling, prefixes, brackets, repetition guards, output at the length
    limit, texts beyond its positions) goes to `fallback`; where `options.approximate` allows it, its own repetition
    guards are used, whose scores are higher, and output is left at the limit.

    With `shortlist` only those target pieces are tried that the sentences of a batch are likely to need: faster, nearly
    as good, but what is written can then depend on the sentences beside it. With `hurried` a sentence that comes to its
    length limit is left as it stands there instead of being decoded again, which takes seconds; few sentences are not
    divided among the workers, which others need too; and the workers give way to what answers requests. For services.

    Sentences beside it can decide between two translations that are all but equally likely. Unless it `shares` few
    sentences among the workers, what is written depends on the sentences alone, not on how many workers there are.

    `alone` is for models that were compiled elsewhere: they end sources themselves, and with no PyTorch to turn to, a
    sentence at its length limit is left as it stands, too.
    """

    works_ahead = True
    penalises_last = True

    def __init__(
        self,
        path: Path,
        vocabularies: Vocabularies,
        fallback: Callable[[], Engine],
        shortlist: bool = False,
        *,
        workers: int | None = None,
        hurried: bool = False,
        alone: bool = False,
        shares: bool = True,
    ) -> None:
        import ctranslate2

        if shortlist and not (path / SHORTLIST).is_file():
            raise BundleError(
                "the compiled model has no shortlist.",
                where=str(path),
                remedy="Export it with --shortlist CORPUS, or translate without.",
            )
        self._shortlist, self._shares = shortlist, shares and not hurried
        self._ends = () if alone else (EOS,)
        self._leaves_long = hurried or alone
        self._written = _pieces_of(path) if alone else None
        self.calibrated = not shortlist

        self._source_pieces = vocabularies.source.all_pieces()
        self._target_pieces = vocabularies.target.all_pieces()
        self._target_ids = {piece: index for index, piece in enumerate(self._target_pieces)}
        self._fallback = fallback
        self._workers = workers or cores()
        try:
            # Workers scale with the cores, threads of one worker hardly do; no queue limit, or beginning would wait.
            make = partial(
                ctranslate2.Translator,
                str(path),
                device="cpu",
                inter_threads=self._workers,
                intra_threads=1,
                max_queued_batches=-1,
            )
            self._translator = _giving_way(make) if hurried else make()
        except (RuntimeError, ValueError) as error:
            raise BundleError("the compiled model is damaged.", where=str(path), remedy="Delete it.") from error

    def decode(self, sources: Sequence[Sequence[int]], options: DecodingOptions) -> list[list[Hypothesis]]:
        """For each source (ids without end of sentence) its hypotheses, best first."""
        return self.begin(sources, options)()

    def begin(self, sources: Sequence[Sequence[int]], options: DecodingOptions) -> Callable[[], list[list[Hypothesis]]]:
        """As `decode`, but what is returned gives the result when called; the workers are at it meanwhile."""
        if not _is_plain(options):
            return partial(self._fallback().decode, sources, options) if sources else list
        short = [index for index, source in enumerate(sources) if len(source) < POSITIONS]
        places = POSITIONS - len(options.start)
        limits = [min(options.max_length(len(sources[index]) + 1), places) for index in short]
        results = self._results([sources[index] for index in short], max(limits, default=0), options)

        def finish() -> list[list[Hypothesis]]:
            found: list[list[Hypothesis]] = [[] for _ in sources]
            penalties = [length_penalty(float(length), options) for length in range(max(limits, default=0) + 1)]
            left = [index for index, source in enumerate(sources) if len(source) >= POSITIONS]
            # The workers take the longest first: in that order there is always something to do while they work.
            for place in sorted(range(len(short)), key=lambda place: -len(sources[short[place]])):
                result = results[place].result()
                # Whoever comes to its own limit may have been cut at the longest one's. Only if such a hypothesis is
                # among the best does it matter: with its end of sentence it would have scored lower still.
                skipped = len(options.start)
                texts = [pieces[skipped : skipped + limits[place] - 1] for pieces in result.hypotheses]
                best = self._ranked(texts, result.scores, penalties, options.n_best)
                if self._leaves_long or options.approximate or all(len(each.tokens) < limits[place] for each in best):
                    found[short[place]] = best
                else:
                    left.append(short[place])
            for index, hypotheses in zip(left, self._slowly(left, sources, options), strict=True):
                found[index] = hypotheses
            return found

        return finish

    def score(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], start: Sequence[int] = ()
    ) -> list[Hypothesis]:
        """How likely the model finds each target (ids without end of sentence, as the sources), in their order."""
        lengths = [max(len(s), len(start) + len(t)) for s, t in zip(sources, targets, strict=True)]
        short = [index for index, length in enumerate(lengths) if length < POSITIONS]
        long = [index for index, length in enumerate(lengths) if length >= POSITIONS]
        results = self._translator.score_batch(
            [[self._source_pieces[token] for token in (*sources[index], *self._ends)] for index in short],
            [[self._target_pieces[token] for token in (*start, *targets[index])] for index in short],
            max_batch_size=max(SCORED_TOKENS, *lengths, 0) + 1,
            batch_type="tokens",
            max_input_length=0,
            offset=len(start),
            asynchronous=True,
        )
        found: dict[int, Hypothesis] = {}
        for index, result in zip(short, results, strict=True):
            scores = list(result.result().log_probs)
            penalty = length_penalty(float(len(scores)), PLAIN)
            found[index] = Hypothesis([*targets[index], EOS], sum(scores) / penalty, sum(scores), scores)
        if long:
            slowly = self._fallback().score([sources[i] for i in long], [targets[i] for i in long], start)
            found |= zip(long, slowly, strict=True)
        return [found[index] for index in range(len(sources))]

    def _results(self, sources: list[Sequence[int]], limit: int, options: DecodingOptions) -> list[Any]:
        """CTranslate2's results to come: as many hypotheses as the beam for each source, with log-probabilities.

        Sentences of like length go together, whatever their order, and no worker stays idle while there are two.
        """
        if not sources:
            return []
        longest = max(map(len, sources)) + 1
        workers = self._workers if self._shares else 1
        share = -(-sum(len(source) + 1 for source in sources) // workers)
        start = [self._target_pieces[token] for token in options.start]
        results: list[Any] = self._translator.translate_batch(
            [[self._source_pieces[token] for token in (*source, *self._ends)] for source in sources],
            target_prefix=[start] * len(sources) if start else None,
            beam_size=options.beam,
            num_hypotheses=options.beam,
            length_penalty=0,
            max_batch_size=max(longest, min(BATCH_TOKENS // options.beam, share)),
            batch_type="tokens",
            asynchronous=True,
            max_input_length=0,
            max_decoding_length=limit + len(start),
            min_decoding_length=options.min_length + len(start) if options.min_length else 0,
            no_repeat_ngram_size=options.no_repeat_ngram,
            repetition_penalty=options.repetition_penalty,
            disable_unk=UNKNOWN in options.suppress,
            suppress_sequences=[[self._target_pieces[token]] for token in self._suppressed(options)] or None,
            use_vmap=self._shortlist,
            return_scores=True,
        )
        return results

    def _suppressed(self, options: DecodingOptions) -> list[int]:
        """Ids never to be written that CTranslate2 can be told of: those that it could write at all."""
        return [
            token
            for token in options.suppress
            if token != UNKNOWN and (self._written is None or self._target_pieces[token] in self._written)
        ]

    def _slowly(
        self, left: list[int], sources: Sequence[Sequence[int]], options: DecodingOptions
    ) -> list[list[Hypothesis]]:
        """The hypotheses of some sources, by the fallback."""
        return self._fallback().decode([sources[index] for index in left], options) if left else []

    def _ranked(
        self, texts: list[list[str]], totals: list[float], penalties: list[float], n_best: int
    ) -> list[Hypothesis]:
        """The best hypotheses of a sentence by the search's own penalty, given for each length."""
        scores = [total / penalties[len(pieces) + 1] for total, pieces in zip(totals, texts, strict=True)]
        best = range(1) if len(texts) == 1 else sorted(range(len(texts)), key=scores.__getitem__, reverse=True)
        return [
            Hypothesis([*map(self._target_ids.__getitem__, texts[place]), EOS], scores[place], totals[place], [])
            for place in best[:n_best]
        ]


def _pieces_of(path: Path) -> frozenset[str]:
    """The pieces that a compiled model can write, by its own file."""
    for name in ("target_vocabulary", "shared_vocabulary"):
        if (path / f"{name}.json").is_file():
            return frozenset(json.loads((path / f"{name}.json").read_text(encoding="utf-8")))
        if (path / f"{name}.txt").is_file():
            return frozenset((path / f"{name}.txt").read_text(encoding="utf-8").split("\n"))
    raise BundleError("the compiled model has no vocabulary.", where=str(path), remedy="Import it again.")


def _giving_way(make: Callable[[], Any]) -> Any:
    """Something whose threads give way to others of the process: on Linux they have the priority of who starts them."""

    def made() -> Any:
        if sys.platform == "linux":  # elsewhere this is the priority of the whole process
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
        return make()

    with ThreadPoolExecutor(1) as aside:
        return aside.submit(made).result()


def _is_plain(options: DecodingOptions) -> bool:
    """Whether only options are used that mean the same here."""
    others = ["prefix", "sampling", "brackets"]
    others += [] if options.approximate else ["no_repeat_ngram", "repetition_penalty"]
    return all(getattr(options, name) == getattr(PLAIN, name) for name in others)
