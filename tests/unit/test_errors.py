"""The error tree and its messages."""

from __future__ import annotations

from transduce import errors
from transduce.errors import InputError, TransduceError, nearest


def test_every_error_is_a_transduce_error_and_is_drawn() -> None:
    kinds = [vars(errors)[name] for name in errors.__all__ if name != "nearest"]
    assert all(issubclass(kind, TransduceError) for kind in kinds)
    for kind in kinds:
        assert kind.__name__ in (errors.__doc__ or "")


def test_a_message_says_where_what_and_what_to_do() -> None:
    error = InputError("line 7 is empty.", where="train.en:7", remedy="Remove it.")
    assert str(error) == "train.en:7: line 7 is empty. Remove it."
    assert (error.where, error.remedy) == ("train.en:7", "Remove it.")


def test_the_nearest_valid_name_is_offered() -> None:
    assert nearest("rotery", ["rotary", "alibi"]) == "Did you mean 'rotary'? Valid: alibi, rotary."
    assert nearest("xyz", ["rotary", "alibi"]) == "Valid: alibi, rotary."
