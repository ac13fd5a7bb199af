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

    from transduce.decoding import DecodingOptions
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
    """Of the whole text, the prompt included."""
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
        import torch

        from transduce.decoding import decode

        ids = self.vocabulary.encode_document(prompt)
        self._check_length(len(ids), tokens)
        decoding = self._options(ids, tokens, options)
        source = torch.tensor([[self.model.bos_id, *ids]])
        start = len(self.vocabulary.decode(ids))  # some vocabularies leave a space out before the first word

        def added(tokens: list[int]) -> str:
            return self.vocabulary.decode(tokens)[start:]

        stream = _Stream(added, on_text)
        single = decoding.n_best == 1 and (decoding.sampling or decoding.beam == 1)
        found = decode(self.model, source, decoding, stream.see if single and on_text else None)[0]
        results = [
            Continuation(added(each.tokens), each.log_probability, len(each.tokens) - len(ids)) for each in found
        ]
        if on_text is not None:
            stream.finish(results[0].text)
        return results

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


class _Stream:
    """Text as it is written: whole characters only, each once."""

    def __init__(self, added: Callable[[list[int]], str], on_text: Callable[[str], None] | None) -> None:
        self._added, self._on_text = added, on_text
        self._said = ""

    def see(self, written_BKT: Tensor) -> None:
        """What is written so far, of which only the first row is looked at."""
        text = self._added(written_BKT[0, 0].tolist())
        if not text.endswith(BROKEN):
            self._say(text)

    def finish(self, text: str) -> None:
        """The rest, when all is written."""
        self._say(text)

    def _say(self, text: str) -> None:
        if self._on_text is not None and text.startswith(self._said) and text != self._said:
            self._on_text(text[len(self._said) :])
            self._said = text
