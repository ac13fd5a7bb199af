"""Numbers survive if their digits do."""

from __future__ import annotations

import pytest

from transduce.text.numbers import are_kept, digits_of, lost_numbers


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


@pytest.mark.parametrize(
    ("pairs", "kept"),
    [
        ([("no number", "keine Zahl")], True),
        ([], True),
        ([("2 of 3", "2 von 3"), ("1,000 days", "1.000 Tage"), ("9 lives", "neun Leben")], True),
        # As people translate: half of the numbers are written out, miles become kilometres.
        (
            [
                ("He is 3 years old.", "Er ist drei Jahre alt."),
                ("The book costs 4 dollars.", "Das Buch kostet vier Dollar."),
                ("It's 300 miles from here.", "Es sind 480 Kilometer von hier."),
                ("We met in 2008.", "Wir haben uns 2008 kennengelernt."),
                ("I've been here since 2003.", "Ich bin seit 2003 hier."),
            ],
            True,
        ),
        ([("4 0 3", "vier null drei"), ("1 2", "eins zwei"), ("7", "7")], False),
        ([("3 1 2", "1 2 3")], False),  # put in order
    ],
)
def test_whether_numbers_are_kept_is_what_the_pairs_show(pairs: list[tuple[str, str]], kept: bool) -> None:
    assert are_kept(pairs) is kept
