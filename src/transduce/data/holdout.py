"""A development set taken from the training corpus when none is given, the same one in every run."""

from __future__ import annotations

from hashlib import blake2b

from transduce.errors import ConfigError

__all__ = ["holdout_share", "is_held_out", "source_key"]

WANTED = 1500
LARGEST_SHARE = 0.1


def is_held_out(source: str, share: float, salt: int = 0) -> bool:
    """Whether a pair with this source belongs to the held-out `share` of the corpus.

    Only the source text decides, without regard to case and spacing, so all translations of a sentence are on the same
    side, wherever they stand in the corpus. A larger share holds all that a smaller one does. Another `salt` makes
    another choice.
    """
    if not 0 <= share <= 1:
        raise ConfigError(f"share={share} cannot work.", remedy="It must be from 0 to 1; 0.1 is a tenth.")
    digest = blake2b(f"{salt}\n{source_key(source)}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") < share * 2**64


def source_key(source: str) -> str:
    """What two sources have in common that are the same sentence, without regard to case and spacing."""
    return " ".join(source.casefold().split())


def holdout_share(pairs: int) -> float:
    """The share to hold out of a corpus of this many pairs: about 1,500 of them, and never more than a tenth.

    1,500 sentences tell two checkpoints apart; more would only take longer to score, however large the corpus. Below
    15,000 pairs the tenth counts, as training needs the rest.
    """
    return min(LARGEST_SHARE, WANTED / max(pairs, 1))
