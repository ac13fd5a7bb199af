"""How much a service lets anyone ask of it; past that come refusals: at once, with a reason and when to try again."""

from __future__ import annotations

import hashlib
import hmac
import math
import time
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from transduce.errors import ConfigError, InputError, StorageError

__all__ = ["Keys", "Limits", "Rates", "Refusal"]

BYTES_A_CHARACTER = 12
"""Of a request: JSON may write a character as \\ud83d\\udc4d."""
REMEMBERED = 10_000
"""Callers whose requests are counted; beyond that the one not heard of for longest is forgotten."""


class Refusal(Exception):  # noqa: N818 - it is an answer, not a mistake of ours
    """A request that is not served: the status, a sentence for the caller, and seconds after which to try again."""

    def __init__(self, status: int, reason: str, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.reason, self.message, self.retry_after = status, reason, message, retry_after


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a service takes on."""

    characters: int = 5000
    """Of all texts of a request together."""
    texts: int = 100
    """In one request."""
    waiting: int = 2000
    """Sentences that wait to be decoded, of all requests together."""
    seconds: float = 30.0
    """From a request to its answer; also for sending the request."""
    requests_per_minute: int = 300
    """Of one key, or of one address where there are no keys; 0 is no limit."""

    def __post_init__(self) -> None:
        for name in ("characters", "texts", "waiting", "seconds"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"a limit of {getattr(self, name):g} {name} lets nothing through.")
        if self.requests_per_minute < 0:
            raise ConfigError(f"requests per minute: {self.requests_per_minute} cannot be.", remedy="0 is no limit.")

    @property
    def body(self) -> int:
        """Bytes of a request."""
        return 16_384 + BYTES_A_CHARACTER * self.characters

    def check_texts(self, texts: list[str]) -> None:
        """Refuse what is too much for one request."""
        if len(texts) > self.texts:
            raise Refusal(413, "texts", f"{len(texts)} texts are too many at once; at most {self.texts}.")
        if (count := sum(map(len, texts))) > self.characters:
            raise Refusal(413, "characters", f"{count} characters are too many; at most {self.characters}.")


class Rates:
    """Requests of each caller: so many a minute, and so many at once; then they come back one by one."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._callers: OrderedDict[str, tuple[float, float]] = OrderedDict()  # what is left, and when that was so

    def count(self, caller: str) -> None:
        """One more request; refused when there were too many."""
        if not self._per_minute:
            return
        now, a_second = time.monotonic(), self._per_minute / 60
        left, then = self._callers.pop(caller, (float(self._per_minute), now))
        left = min(self._per_minute, left + (now - then) * a_second)
        self._callers[caller] = (left - 1 if left >= 1 else left, now)
        if len(self._callers) > REMEMBERED:
            self._callers.popitem(last=False)
        if left < 1:
            raise Refusal(
                429,
                "rate",
                f"Too many requests: at most {self._per_minute} a minute.",
                retry_after=max(1, math.ceil((1 - left) / a_second)),
            )


class Keys:
    """The keys that open the service; only their digests are kept."""

    def __init__(self, keys: list[str]) -> None:
        self._digests = [_digest(key) for key in keys]

    @classmethod
    def read(cls, path: Path) -> Keys:
        """Of a file with a key a line; empty lines and those that start with # do not count."""
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise InputError("the file of keys is not UTF-8.", where=str(path)) from error
        except OSError as error:
            raise StorageError(f"cannot read the keys: {error.strerror}.", where=str(path)) from error
        keys = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
        if not keys:
            raise InputError("there is no key in it.", where=str(path), remedy="Write one on a line of its own.")
        for number, line in enumerate(lines, start=1):
            if line.strip() in keys and len(line.strip()) < 8:
                raise InputError("a key of fewer than 8 characters is easily guessed.", where=f"{path}:{number}")
        return cls(keys)

    def holder(self, key: str) -> str | None:
        """A name for who has this key, or None if nobody has; takes as long for one as for the other."""
        digest = _digest(key)
        known = [hmac.compare_digest(digest, each) for each in self._digests]
        return digest.hex() if any(known) else None


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
