"""Draws the measurements as bars (SVG), from the kept document alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jinja2 import Environment

from benchmarks.comparison.plan import PATHS
from benchmarks.comparison.results import OURS, RELEASE, Medians

COLOURS: Final = {
    "api": "#4e79a7", "postgres": "#59a14f", "checker": "#f28e2b", "kafka": "#e15759",
    "client": "#bab0ac", "acknowledged": "#4e79a7", "through": "#59a14f",
}  # fmt: skip
WIDTH: Final = 420
TEMPLATE: Final = """\
<svg xmlns="http://www.w3.org/2000/svg" width="760" height="{{ height }}"\
 font-family="sans-serif" font-size="12">
<rect width="760" height="{{ height }}" fill="#ffffff"/>
<text x="10" y="20" font-size="15">{{ title }}</text>
{%- for name, colour in legend %}
<rect x="{{ 10 + loop.index0 * 110 }}" y="30" width="12" height="12" fill="{{ colour }}"/>
<text x="{{ 26 + loop.index0 * 110 }}" y="41">{{ name }}</text>
{%- endfor %}
{%- for bar in bars %}
<text x="230" y="{{ bar.y + 13 }}" text-anchor="end">{{ bar.label }}</text>
{%- for piece in bar.pieces %}
<rect x="{{ piece.x }}" y="{{ bar.y }}" width="{{ piece.width }}" height="17"\
 fill="{{ piece.colour }}"/>
{%- endfor %}
<text x="{{ bar.end + 6 }}" y="{{ bar.y + 13 }}">{{ bar.text }}</text>
{%- endfor %}
</svg>
"""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its label, its parts by name, the text at its end."""

    label: str
    parts: Mapping[str, float]
    text: str


def plots(document: Mapping[str, Any]) -> dict[str, str]:
    """Return each picture by its file name."""
    found: Medians = document["medians"]
    return {
        "bench-costs.svg": drawn("CPU microseconds a message, by process", costs(found)),
        "bench-rates.svg": drawn("Messages a second until consumers see them", [rates(found)]),
    }


def costs(found: Medians) -> list[list[Bar]]:
    """Return a group of bars for each path; each group has a scale of its own."""
    return [
        [
            Bar(f"{path}, {subject}", row["cpu_us"], f"{sum(row['cpu_us'].values()):,.0f} µs")
            for subject in (OURS, RELEASE)
            if (row := found.get(subject, {}).get(path))
        ]
        for path in reversed(PATHS)
    ]


def rates(found: Medians) -> list[Bar]:
    """Return one bar for each path of each subject."""
    return [
        Bar(f"{subject}, {path}", {"through": row["through_per_second"]},
            f"{row['through_per_second']:,.0f}/s")
        for subject, paths in found.items()
        for path, row in paths.items()
        if "through_per_second" in row
    ]  # fmt: skip


def drawn(title: str, groups: Sequence[Sequence[Bar]]) -> str:
    """Return a picture of the groups, one below the other."""
    bars, y, names = [], 58, dict.fromkeys(
        name for group in groups for bar in group for name in bar.parts
    )  # fmt: skip
    for group in groups:
        largest = max((sum(bar.parts.values()) for bar in group), default=1.0)
        for bar in group:
            bars.append({"label": bar.label, "text": bar.text, "y": y, **_pieces(bar, largest)})
            y += 22
        y += 12
    legend = [(name, COLOURS[name]) for name in names]
    page = Environment(autoescape=True).from_string(TEMPLATE)
    return page.render(title=title, legend=legend, bars=bars, height=y) + "\n"


def _pieces(bar: Bar, largest: float) -> dict[str, Any]:
    x, pieces = 238.0, []
    for name, value in bar.parts.items():
        width = round(value / largest * WIDTH, 1)
        pieces.append({"x": round(x, 1), "width": width, "colour": COLOURS[name]})
        x += width
    return {"pieces": pieces, "end": round(x, 1)}
