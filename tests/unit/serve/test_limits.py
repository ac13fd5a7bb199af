"""Limits, rates and keys by themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from transduce.errors import ConfigError, InputError, StorageError
from transduce.serve import limits
from transduce.serve.limits import Keys, Limits, Rates, Refusal


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which goes on when told to."""
    now = [100.0]
    monkeypatch.setattr(limits.time, "monotonic", lambda: now[0])
    return now


def test_so_many_a_minute_then_one_by_one(clock: list[float]) -> None:
    rates = Rates(30)
    for _ in range(30):
        rates.count("Ama")
    with pytest.raises(Refusal) as refusal:
        rates.count("Ama")
    assert (refusal.value.status, refusal.value.retry_after) == (429, 2)
    rates.count("Kofi")  # has a count of his own
    clock[0] += 2.0
    rates.count("Ama")
    with pytest.raises(Refusal):
        rates.count("Ama")
    clock[0] += 3600
    for _ in range(30):
        rates.count("Ama")
    with pytest.raises(Refusal):
        rates.count("Ama")


def test_being_refused_costs_nothing(clock: list[float]) -> None:
    rates = Rates(1)
    rates.count("Ama")
    for _ in range(50):
        with pytest.raises(Refusal):
            rates.count("Ama")
    clock[0] += 60
    rates.count("Ama")


def test_callers_beyond_number_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REMEMBERED", 3)
    rates = Rates(1)
    for name in "abcd":
        rates.count(name)
    rates.count("a")
    with pytest.raises(Refusal):
        rates.count("d")


def test_no_limit_is_no_limit() -> None:
    rates = Rates(0)
    for _ in range(10_000):
        rates.count("Ama")


def test_limits_that_let_nothing_through_are_refused() -> None:
    for name in ("characters", "texts", "waiting", "seconds"):
        with pytest.raises(ConfigError, match=f"0 {name} lets nothing through"):
            Limits(**{name: 0})
    with pytest.raises(ConfigError, match="0 is no limit"):
        Limits(requests_per_minute=-1)


def test_the_largest_request_that_the_limits_allow_has_room() -> None:
    for character in ("a", "é", "日", "👍"):
        assert len(json.dumps({"q": character * 5000})) < Limits(characters=5000).body


def test_keys_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("# ours\n\nthe-first-key\n  the second key  \n", encoding="utf-8")
    keys = Keys.read(file)
    assert keys.holder("the-first-key")
    assert keys.holder("the second key") not in (None, keys.holder("the-first-key"))
    for wrong in ("", "# ours", "the-first", "the-first-key ", "THE-FIRST-KEY", "\ud800"):
        assert keys.holder(wrong) is None
    assert "first" not in repr(vars(keys))


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "no key"), (b"# only\n", "no key"), (b"short\n", r"keys:1: .*easily guessed"), (b"\xff\xfe", "not UTF-8")],
)
def test_files_without_good_keys(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "keys").write_bytes(content)
    with pytest.raises(InputError, match=words):
        Keys.read(tmp_path / "keys")
    with pytest.raises(StorageError, match="cannot read the keys"):
        Keys.read(tmp_path / "none")
