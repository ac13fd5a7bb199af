"""Numbers survive if their digits do."""

from __future__ import annotations

import pytest

from transduce.guards.numbers import digits_of, lost_numbers


@pytest.mark.parametrize(
    ("numbers", "text", "lost"),
    [
        (["1,000"], "Das kostet 1.000 Euro.", []),
        (["1,000"], "Das kostet 1000 Euro.", []),
        (["1,000"], "Das kostet 1 000 Euro.", []),
        (["2:30"], "um 2.30 Uhr", []),
        (["2:30"], "um halb drei", [0]),
        (["5"], "15", [0]),
        (["15"], "1 und 5", [0]),
        (["12", "05", "2020"], "am 12.05.2020", []),
        (["3", "3"], "drei und 3", [1]),
        (["3rd"], "der 3. Mann", []),
        (["42"], "٤٢", []),
        ([], "7", []),
    ],
)
def test_which_numbers_are_lost(numbers: list[str], text: str, lost: list[int]) -> None:
    assert lost_numbers(numbers, text) == lost


def test_digits_of_all_scripts() -> None:
    assert digits_of("a1,०٢-3") == "1023"
