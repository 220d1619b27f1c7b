"""The pictures of docs/console.md: `make pictures` takes them."""

from __future__ import annotations

from tests.fixtures_paths import PROJECT
from tests.integration.api.console.browser.fixtures_chromium import size_of
from tests.integration.api.console.fixtures_pictures import HEIGHT, PICTURES, WIDTH, name_of

SMALLEST_BYTES = 15_000
"""A page of one colour takes a quarter of it."""
LARGEST_BYTES = 150_000


def test_the_page_shows_each_picture_light_and_dark() -> None:
    text = (PROJECT / "docs" / "console.md").read_text("utf-8")
    for page in PICTURES:
        for dark in (False, True):
            file = name_of(page, dark=dark)
            taken = file.read_bytes()
            assert size_of(taken) == (WIDTH, HEIGHT)
            assert SMALLEST_BYTES < len(taken) < LARGEST_BYTES, (file.name, len(taken))
            assert f"images/{file.name}" in text
