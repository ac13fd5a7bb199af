"""What a translation must be, and what is done where it is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from transduce.confidence import Confidence, Signs
from transduce.guards.capitals import in_capitals, is_better_small
from transduce.guards.draft import Assembly, Draft, Manner
from transduce.guards.glossary import Glossary, is_there
from transduce.guards.parts import Part, bare, edges, find_parts
from transduce.guards.repetition import Repetition, may_repeat
from transduce.guards.slots import at_start, filled, restored
from transduce.text import Vocabularies
from transduce.text.numbers import lost_numbers
from transduce.translation import Alternative, Flag

if TYPE_CHECKING:
    from transduce.decoding import DecodingOptions, Hypothesis

__all__ = ["LONGEST", "Guard", "longest_output"]

LONGEST = 400
"""Tokens from which a sentence is cut, at a space: models know none so long, and time grows with the square of it."""
PIECE = 30
"""Tokens of the pieces that a sentence is cut into if it cannot be translated whole."""
DEEPEST = 2
"""How often pieces are cut into pieces; then they are cut around everything that must survive."""
SHOWN = 40
"""Characters of a part that a message shows."""
ENDINGS = ".!?。！？"


def longest_output(source: int) -> int:
    """The most tokens that a translation of so many has; anything longer has run away."""
    return 3 * source + 20


@dataclass(frozen=True)
class _Judgement:
    """What is wrong with a hypothesis."""

    flags: tuple[str, ...] = ()
    """Of what it is too much or too little: "repetition", "length", "untranslated"."""
    lost: tuple[Part, ...] = ()
    """What it should hold and does not."""


GOOD = _Judgement()


class Guard:
    """Looks at what was written for drafts, and says what is to be done with them."""

    def __init__(
        self,
        vocabularies: Vocabularies,
        options: DecodingOptions,
        *,
        glossary: Glossary | None = None,
        confidence: Confidence | None = None,
        tags: int = 0,
        numbers: bool = True,
        active: bool = True,
    ) -> None:
        """Of decoding `options`, and of a number of tags before each source; if it is not `active`, all is good.

        Without `numbers` digits are words like others.
        """
        self._numbers = numbers
        self._confidence = confidence
        self._source, self._target = vocabularies.source, vocabularies.target
        self._tags, self._active = tags, active
        self._options = options
        self._options_of: dict[Manner, DecodingOptions] = {}
        self._glossary = glossary or None
        self._slots = [slot for slot in vocabularies.source.slots if slot in vocabularies.target.slots]

    # Before anything is decoded

    def items(self, text: str, depth: int = 0, prefix: Sequence[int] = ()) -> list[str | Draft]:
        """A sentence as a draft, and what is around it: spaces, and what needs no translation."""
        if not self._active:
            return [Draft(text, depth=depth, prefix=list(prefix))]
        parts = [part for part in find_parts(text) if self._numbers or part.kind != "number"]
        terms = self._glossary.find(text, parts) if self._glossary else []
        capitals = not prefix and is_better_small(bare(text, parts) if parts else text, self._source)
        if not parts and not terms:
            whole = Draft(text, depth=depth, prefix=list(prefix), capitals=capitals)
            return [whole] if prefix or _has_words(text) else [text]
        fixed = _fixed(parts)
        start, end = (0, len(text)) if prefix else edges(text, parts)
        if not _has_words(bare(text, fixed)) and not prefix and not terms:
            return [filled(text, fixed)]
        inside = [part for part in parts if part.start >= start and part.end <= end]
        draft = Draft(text[start:end], _moved(inside, start), depth=depth, prefix=list(prefix), capitals=capitals)
        draft.terms = [(_moved([part], start)[0], term) for part, term in terms]
        if not prefix:
            kept = [part for part, term in draft.terms if term.is_kept]
            self._mask(draft, [*_fixed(draft.parts), *kept])
        return [filled(text[:start], parts), draft, filled(text[end:], _moved(parts, end))]

    def ready(self, draft: Draft, ids: list[int]) -> bool:
        """Whether a draft can be decoded as these ids; if not, it is done or cut into pieces."""
        if not ids:
            draft.found = [Alternative("", 0.0)]
            return False
        if self._active and not draft.prefix and not self._source.knows(ids):
            draft.found = [Alternative(filled(draft.text, draft.parts), 0.0, self._none)]
            draft.flags = [Flag("untranslated", "The model does not know these letters; the text was copied.")]
            return False
        if len(ids) > LONGEST:
            draft.pieces = self._cut(draft, _fixed(draft.parts), LONGEST)
            return False
        return True

    def options(self, manner: Manner) -> DecodingOptions:
        """How to decode in this manner."""
        if manner not in self._options_of:
            self._options_of[manner] = self._changed(manner)
        return self._options_of[manner]

    def _changed(self, manner: Manner) -> DecodingOptions:
        asked = self._options
        if not self._active:
            return asked
        if manner == "plain":
            # Whether an engine repeats itself or comes to its limit is seen here: it need not be sure by itself.
            return asked.replace(approximate=asked.no_repeat_ngram == 0 and asked.repetition_penalty == 1)
        searched = {"sampling": False, "temperature": 1.0, "top_k": 0, "top_p": 1.0, "seed": 0, "approximate": True}
        if manner == "wide":
            beam = max(asked.beam, 8)
            return asked.replace(**searched, beam=beam, n_best=beam)
        beam = max(asked.beam, 5)
        firm = {"no_repeat_ngram": 3, "max_length_ratio": 2.0, "max_length_extra": 10, "min_length": 1}
        return asked.replace(**searched, **firm, beam=beam, n_best=beam)

    # What was decoded

    def look(self, draft: Draft, hypotheses: Sequence[Hypothesis], texts: Sequence[str]) -> bool:
        """Look at what was written for a draft, and whether it is to be decoded again; if not, it is done or cut."""
        draft.tries += 1
        if self._active:  # halves of characters say nothing to anybody
            texts = [text.replace("\ufffd", "") if "\ufffd" in text else text for text in texts]
        limit = self._limit(draft)
        judged = [
            self._judge(draft, limit, hypothesis.tokens, text) if self._active else GOOD
            for hypothesis, text in zip(hypotheses, texts, strict=True)
        ]
        good = [index for index, judgement in enumerate(judged) if judgement is GOOD]
        if not good:
            return self._again(draft, hypotheses, texts, judged)
        draft.tokens, draft.signs = hypotheses[good[0]].tokens, _signs(draft, hypotheses[good[0]])
        draft.found = [
            Alternative(
                self._written(draft, texts[index]),
                hypotheses[index].score,
                self._confidence.of(_signs(draft, hypotheses[index])) if self._confidence else None,
            )
            for index in good[: self._options.n_best]
        ]
        return False

    def _judge(self, draft: Draft, limit: int, tokens: Sequence[int], text: str) -> _Judgement:
        flags = []
        if len(tokens) > limit:
            flags.append("length")
        if may_repeat(tokens) and Repetition(draft.text).is_in(text):
            flags.append("repetition")
        if not _has_words(text) and _has_words(draft.text):
            flags.append("untranslated")
        if not draft.parts and not draft.terms and "⟦" not in text:
            return _Judgement(tuple(flags)) if flags else GOOD
        lost = self._lost(draft, text)
        return _Judgement(tuple(flags), tuple(lost)) if flags or lost else GOOD

    def _limit(self, draft: Draft) -> int:
        """The tokens, end of sentence included, that what is written for a draft may have."""
        asked = self.options(draft.manner).max_length(len(draft.ids) + 1)
        # Who asks for less than is usual knows that sentences end there.
        cut_off = asked - 1 if asked > len(draft.ids) + 20 or draft.manner == "firm" else asked
        return min(cut_off, longest_output(len(draft.ids) - self._tags) + 1)

    def _lost(self, draft: Draft, text: str) -> list[Part]:
        """What a text that was written for a draft should hold, and does not, or not as often."""
        lost = [part for slot, part in draft.slots.items() if text.count(slot) != 1]
        masked = set(draft.slots.values())
        text = self._written(draft, text)
        rest = [part for part in _fixed(draft.parts) if part not in masked]
        wanted = [part.filling for part in rest]
        lost += [
            part for place, part in enumerate(rest) if text.count(part.filling) <= wanted[:place].count(part.filling)
        ]
        numbers = [part for part in draft.parts if part.kind == "number"]
        if numbers:
            without = text  # digits of addresses and the like are no numbers
            for part in _fixed(draft.parts):
                without = without.replace(part.filling, " ", 1)
            lost += [numbers[index] for index in lost_numbers([part.filling for part in numbers], without)]
        terms = [part for part, _ in draft.terms if part not in masked]
        wanted = [part.filling.casefold() for part in terms]
        lost += [
            part
            for place, part in enumerate(terms)
            if is_there(part.filling, text) <= wanted[:place].count(part.filling.casefold())
        ]
        return sorted(set(lost))

    # What to do about it

    def _again(
        self, draft: Draft, hypotheses: Sequence[Hypothesis], texts: Sequence[str], judged: Sequence[_Judgement]
    ) -> bool:
        """Find another way to translate a draft, and whether it is to be decoded again."""
        wild = [judgement for judgement in judged if judgement.flags]
        is_wild = len(wild) == len(judged)
        lost = min((judgement.lost for judgement in judged if is_wild or not judgement.flags), key=len)
        if draft.prefix:
            self._repair(draft, hypotheses, texts, judged)
            return False
        if self._numbers and not any(
            map(str.isalpha, bare(draft.text, draft.parts))
        ):  # numbers and signs say the same everywhere
            draft.found = [Alternative(filled(draft.text, draft.parts), 0.0)]
            return False
        if draft.tries == 1:
            if is_wild and len(draft.ids) > 2 * PIECE:
                self._cut_up(draft, _fixed(draft.parts), PIECE)
                return False
            soft = all(part.kind in ("number", "term") or part in draft.slots.values() for part in lost)
            if is_wild or soft:
                self._mask(draft, [*draft.slots.values(), *lost])
                draft.manner = "firm" if is_wild else "wide"
                return True
        if lost:
            everything = [*draft.parts, *(part for part, _ in draft.terms)]
            self._cut_up(draft, lost if draft.depth < DEEPEST else sorted(everything), LONGEST)
        elif len(draft.ids) > PIECE and draft.depth < DEEPEST:
            self._cut_up(draft, _fixed(draft.parts), PIECE)
        else:
            self._repair(draft, hypotheses, texts, judged)
        return False

    def join(self, draft: Draft) -> None:
        """Put together the pieces of a draft, once all of them are done; what they make together is looked at again."""
        if draft.pieces is None:
            return
        for item in draft.pieces.items:
            if isinstance(item, Draft):
                self.join(item)
        whole = draft.pieces.translation()
        draft.found, draft.redone = whole.alternatives, whole.redone
        own = {flag.code for flag in draft.flags}
        draft.flags += [flag for flag in whole.warnings if flag.code != "pieces" or "pieces" not in own]
        if not self._active:
            return
        repetition, longest = Repetition(draft.text), longest_output(len(self._source.encode(draft.text)))
        good = [
            each
            for each in draft.found
            if not repetition.is_in(each.text) and len(self._target.encode(each.text)) <= longest
        ]
        if not good:
            self._copy(draft)
        elif len(good) < len(draft.found):
            draft.found = good

    def _mask(self, draft: Draft, parts: Sequence[Part]) -> None:
        """Put slots in place of parts, if there are as many."""
        parts = sorted(set(parts))
        if len(parts) <= len(self._slots):
            draft.slots = dict(zip(self._slots, parts, strict=False))

    def _cut_up(self, draft: Draft, around: Sequence[Part], longest: int) -> None:
        draft.pieces = self._cut(draft, around, longest)
        if any(draft.pieces.drafts()):  # or all of it is copied
            draft.flags.append(Flag("pieces", _pieces_message(around)))

    def _cut(self, draft: Draft, around: Sequence[Part], longest: int) -> Assembly:
        """A draft in pieces of at most so many tokens, cut around some of its parts, which are copied."""
        items: list[str | Draft] = []
        position = 0
        for part in [*around, Part(len(draft.text), len(draft.text), "slot", "")]:
            gap = draft.text[position : part.start]
            start, end = _inner(gap) if self._active else (0, len(gap))
            items.append(gap[:start])
            if start < end:
                items += self._gap(draft, gap[start:end], longest)
                items.append(gap[end:])
            items.append(part.filling if draft.text[: part.start].strip() else at_start(part, draft))
            position = part.end
        first = next((item for item in items if isinstance(item, Draft)), None)
        if first is not None:
            first.prefix = draft.prefix
        return Assembly([item for item in items if item])

    def _gap(self, draft: Draft, core: str, longest: int) -> list[str | Draft]:
        """What stands between two parts that a draft is cut around."""
        if self._active and not any(map(str.isalpha, core)):
            return [core]
        ids = self._source.encode(core)
        if len(ids) <= longest:
            return self.items(core, draft.depth + 1)
        items: list[str | Draft] = []
        for ids_of_piece in self._source.cut(ids, longest - 1):  # a piece has a space before it that it had not
            if items and self._source.begins_word(ids_of_piece):
                items.append(" ")
            items += self.items(self._source.decode(ids_of_piece).strip(), draft.depth + 1)
        return items

    def _repair(
        self, draft: Draft, hypotheses: Sequence[Hypothesis], texts: Sequence[str], judged: Sequence[_Judgement]
    ) -> None:
        """Make do with what there is: without what is repeated and without what is too long, or as it was."""
        best = min(range(len(judged)), key=lambda index: (len(judged[index].flags), len(judged[index].lost), index))
        repetition, limit = Repetition(draft.text), longest_output(len(draft.ids) - self._tags)
        text = repetition.cut(texts[best])
        ids = self._target.encode(text)
        if len(ids) > limit:
            text = repetition.cut(self._target.decode(self._target.cut(ids, limit)[0]))
        text = self._written(draft, text)
        draft.tokens = hypotheses[best].tokens
        if not _has_words(text) and not draft.prefix:
            self._copy(draft)
            return
        draft.found = [Alternative(text, hypotheses[best].score, self._none)]
        for name in judged[best].flags:
            draft.flags.append(Flag(name, MESSAGES[name]))
        for part in judged[best].lost:
            term = part.kind == "term"
            draft.flags.append(
                Flag("glossary" if term else "lost", f"{_shown(part.filling)} is missing from the translation.")
            )

    def _copy(self, draft: Draft) -> None:
        draft.found = [Alternative(filled(draft.text, draft.parts), 0.0, self._none)]
        draft.flags = [Flag("untranslated", f"No translation was found for {_shown(draft.text)}; it was copied.")]

    def _written(self, draft: Draft, text: str) -> str:
        """What was written for a draft, with its parts back in their slots."""
        if draft.capitals:
            masked = draft.slots.values()  # what stands in a slot is not in the text yet
            text = in_capitals(text, (part.filling for part in _fixed(draft.parts) if part not in masked))
        if "⟦" in text:
            text = restored(draft, text)
        if draft.depth and self._active and text[-1:] in ENDINGS and draft.text[-1] not in ENDINGS:
            text = text.rstrip(ENDINGS)  # a piece is no sentence
        return text

    @property
    def _none(self) -> float | None:
        """No confidence at all, where there could be any."""
        return None if self._confidence is None else 0.0


MESSAGES = {
    "repetition": "The model repeated itself; the repetition was cut.",
    "length": "The translation ran on and was cut.",
    "untranslated": "No translation was found.",
}


def _signs(draft: Draft, hypothesis: Hypothesis) -> Signs:
    return Signs(hypothesis.log_probability, len(hypothesis.tokens), len(draft.ids) + 1)


def _has_words(text: str) -> bool:
    return any(map(str.isalnum, text))


def _moved(parts: Sequence[Part], start: int) -> list[Part]:
    """Parts of a text as parts of what starts there."""
    return [part._replace(start=part.start - start, end=part.end - start) for part in parts if part.start >= start]


def _inner(gap: str) -> tuple[int, int]:
    """Where text starts and ends without the spaces around it, and without what ended a clause before it."""
    start = len(gap) - len(gap.lstrip(" \t\n\u00a0,;:.!?)…"))
    return start, max(start, len(gap.rstrip()))


def _fixed(parts: Sequence[Part]) -> list[Part]:
    """Parts that come out letter by letter; of numbers, the digits do."""
    return [part for part in parts if part.kind != "number"]


def _shown(text: str) -> str:
    return f"“{text if len(text) <= SHOWN else text[: SHOWN - 1] + '…'}”"


def _pieces_message(around: Sequence[Part]) -> str:
    if not around:
        return "A sentence was too long or too odd to be translated whole, and was translated in pieces."
    kept = ", ".join(dict.fromkeys(_shown(part.filling) for part in around[:3]))
    return f"A sentence was translated in pieces to keep {kept}{' and more' if len(around) > 3 else ''}."
