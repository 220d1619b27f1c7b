"""The books agree only if every payment has one record and one grant."""

from collections import Counter

import pytest

from examples.demo.ledger import Books, Entries

PAID: Entries = Counter({("id-1", "p1", "m1", 100): 1, ("id-2", "p2", "m1", 100): 1})
TWICE: Entries = PAID + Counter({("id-2", "p2", "m1", 100): 1})
LESS: Entries = Counter({("id-1", "p1", "m1", 100): 1})


def make_books(
    payments: Entries = PAID, records: Entries = PAID, grants: Entries = PAID, points: int = 200
) -> Books:
    return Books(payments=payments, records=records, grants=grants, points=points)


def test_equal_books_are_equal() -> None:
    assert make_books().equal
    assert make_books().differences() == []


@pytest.mark.parametrize(
    "books",
    [
        make_books(records=LESS),
        make_books(records=TWICE),
        make_books(payments=LESS),
        make_books(grants=LESS),
        make_books(points=100),
        make_books(TWICE, TWICE, TWICE, 300),
    ],
)
def test_any_difference_makes_books_unequal(books: Books) -> None:
    assert not books.equal
