"""The pictures are well-formed, and the length of a bar is its share of the largest."""

from __future__ import annotations

from xml.etree import ElementTree

from benchmarks.comparison.plot import WIDTH, Bar, drawn, plots
from tests.unit.benchmarks.comparison.fixtures_documents import usual_document

SVG = "{http://www.w3.org/2000/svg}"


def widths(picture: str) -> list[float]:
    """Return the widths of the bars' pieces; the background and the legend come before them."""
    found = ElementTree.fromstring(picture).iter(f"{SVG}rect")
    return [float(each.attrib["width"]) for each in found if each.attrib["height"] == "17"]


def test_a_bar_of_half_the_value_is_half_as_long() -> None:
    picture = drawn("t", [[Bar("a", {"api": 10.0}, "10"), Bar("b", {"api": 5.0}, "5")]])
    assert widths(picture) == [WIDTH, WIDTH / 2]


def test_each_group_has_a_scale_of_its_own() -> None:
    picture = drawn("t", [[Bar("a", {"api": 10.0}, "10")], [Bar("b", {"api": 0.1}, "0.1")]])
    assert widths(picture) == [WIDTH, WIDTH]


def test_a_label_is_escaped() -> None:
    assert "a &lt; b" in drawn("t", [[Bar("a < b", {"api": 1.0}, "1")]])


def test_the_pictures_of_a_document_are_well_formed() -> None:
    for picture in plots(usual_document()).values():
        assert widths(picture)
