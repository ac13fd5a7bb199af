"""Continue a text with a language model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from transduce.bundle import Bundle, find_model
from transduce.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

    from transduce.decoding import DecodingOptions, Hypothesis
    from transduce.model.decoder_only import LanguageModel

__all__ = ["Continuation", "Generator"]

BROKEN = "\ufffd"
"""What the first bytes of a character look like before the others are there."""


@dataclass(frozen=True)
class Continuation:
    """What a model makes of the beginning of a text."""

    text: str
    """What was added, without the prompt."""
    log_probability: float
    """Of what was added, given the prompt."""
    tokens: int
    """How many were added, the end included if it was written."""


class Generator:
    """A language model that continues texts.

    >>> Generator.load("my-language-model").generate("To be, or", tokens=40).text
    """

    def __init__(self, bundle: Bundle) -> None:
        bundle.require("language-model")
        self.bundle = bundle
        self.vocabulary = bundle.vocabularies().source

    @classmethod
    def load(cls, model: str | Path) -> Generator:
        """Load a model directory."""
        return cls(Bundle.open(find_model(model)))

    @cached_property
    def model(self) -> LanguageModel:
        """The network, loaded when it is first needed."""
        return cast("LanguageModel", self.bundle.module())

    def generate(
        self, prompt: str = "", tokens: int = 100, on_text: Callable[[str], None] | None = None, **options: Any
    ) -> Continuation:
        """Continue a prompt by at most so many tokens; `options` are those of DecodingOptions.

        Drawn at random unless a `beam` is given. `on_text` gets the text piece by piece as it is written, but with
        several beams only at the end.
        """
        return self.generate_several(prompt, tokens, on_text, **options)[0]

    def generate_several(
        self, prompt: str = "", tokens: int = 100, on_text: Callable[[str], None] | None = None, **options: Any
    ) -> list[Continuation]:
        """The `n_best` continuations that were found, best first."""
        ids = self.vocabulary.encode_document(prompt)
        self._check_length(len(ids), tokens)
        start = len(self.vocabulary.decode(ids))  # some vocabularies leave a space out before the first word

        def added(tokens: list[int]) -> str:
            return self.vocabulary.decode([*ids, *tokens])[start:]

        stream = _Stream(added, on_text)
        single = self._options(ids, 1, options)
        watch = stream if on_text and single.n_best == 1 and (single.sampling or single.beam == 1) else None
        results = []
        for first in self._segment(ids, tokens, options, watch):
            whole = first
            while whole.cut and len(whole.tokens) <= tokens:
                # Beyond what it has learned to read at once, it reads the last half of that again and goes on.
                so_far, scores = whole.tokens[:-1], whole.scores[:-1]
                if watch is not None:
                    watch.before = so_far
                left = tokens - len(so_far)
                more = self._segment([*ids, *so_far], left, options | {"n_best": 1}, watch)[0]
                whole = _Added([*so_far, *more.tokens], [*scores, *more.scores], more.cut)
            results.append(Continuation(added(whole.tokens), sum(whole.scores), len(whole.tokens)))
        if on_text is not None:
            stream.finish(results[0].text)
        return results

    def _segment(
        self, text: list[int], tokens: int, options: dict[str, Any], watch: _Stream | None = None
    ) -> list[_Added]:
        """What is added to a text in one go: no more than is read at once while learning."""
        import torch

        from transduce.decoding import decode

        context = self.bundle.config.context
        if self.model.max_target_length is not None:
            context = None  # positions were checked
        read = text if context is None or len(text) + 1 < context else text[-(context // 2) :]
        room = tokens if context is None else min(tokens, context - len(read))
        if watch is not None:
            watch.read = len(read)
        source = torch.tensor([[self.model.bos_id, *read]])
        found = decode(self.model, source, self._options(read, room, options), watch.see if watch else None)[0]
        return [_Added.of(each, len(read), room) for each in found]

    def _options(self, ids: list[int], tokens: int, overrides: dict[str, Any]) -> DecodingOptions:
        from transduce.decoding import DecodingOptions

        drawn = {"sampling": True, "beam": 1} if "beam" not in overrides else {}
        usual = drawn | self.bundle.config.decoding | overrides
        suppress = (*self.vocabulary.unwritten, *usual.pop("suppress", ()))
        # Of a source of BOS and the prompt, as many are written again before anything new.
        limits = {"max_length_ratio": 1.0, "max_length_extra": tokens}
        return DecodingOptions().replace(**usual, **limits, prefix=ids, suppress=suppress)

    def _check_length(self, prompt: int, tokens: int) -> None:
        longest = self.model.max_target_length
        if tokens < 1:
            raise InputError(f"{tokens} tokens are to be written.", remedy="Ask for one or more.")
        if longest is not None and prompt + tokens + 1 > longest:
            shorter = (
                f"ask for at most {longest - prompt - 1} tokens" if prompt + 2 <= longest else "shorten the prompt"
            )
            raise InputError(
                f"the prompt has {prompt} tokens and {tokens} are to be written, but the model has learned "
                f"{longest} positions.",
                remedy=f"{shorter}, or train with a larger model.max_length, or with "
                "model.positions=rotary, which has no limit.",
            )


@dataclass(frozen=True)
class _Added:
    """Tokens that were added to a text; `cut` if it was the limit that ended them."""

    tokens: list[int]
    """The end last, be it written or put there by the limit."""
    scores: list[float]
    cut: bool

    @classmethod
    def of(cls, hypothesis: Hypothesis, read: int, room: int) -> _Added:
        """What stands behind the tokens that were read."""
        tokens = hypothesis.tokens[read:]
        return cls(tokens, hypothesis.token_scores[read:], cut=len(tokens) > room)


class _Stream:
    """Text as it is written: whole characters only, each once."""

    def __init__(self, added: Callable[[list[int]], str], on_text: Callable[[str], None] | None) -> None:
        self._added, self._on_text = added, on_text
        self._said = ""
        self.before: list[int] = []
        """Tokens that were added before those that are being written."""
        self.read = 0
        """Tokens at the beginning of what is shown that were only read."""

    def see(self, written_BKT: Tensor) -> None:
        """What is written so far, of which only the first row is looked at."""
        text = self._added([*self.before, *written_BKT[0, 0, self.read :].tolist()])
        if not text.endswith(BROKEN):
            self._say(text)

    def finish(self, text: str) -> None:
        """The rest, when all is written."""
        self._say(text)

    def _say(self, text: str) -> None:
        if self._on_text is not None and text.startswith(self._said) and text != self._said:
            self._on_text(text[len(self._said) :])
            self._said = text
