"""Bar charts in SVG, written by hand: groups of horizontal bars with a whisker from the least to the most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _LABEL, _VALUE = 760, 190, 90
_BAR, _GAP, _TOP = 15, 14, 34
_COLOURS = {
    "bare": "#9aa0a6",
    "cpp": "#3c4043",
    "gen": "#1a73e8",
    "agen": "#188038",
    "reply": "#74a9f2",
    "areply": "#7bc48f",
    "peer": "#d56e0c",
}


@dataclass(frozen=True, slots=True)
class Bar:
    """One value with its range; ``base`` gives the colour, ``pale`` is for the second choice of the same base."""

    label: str
    base: str
    low: float
    value: float
    high: float
    pale: bool = False


def chart(title: str, unit: str, groups: Sequence[tuple[str, Sequence[Bar]]], *, digits: int = 0) -> str:
    """The text of an SVG file.

    Args:
        title: Stands above.
        unit: Of every value.
        groups: A heading and its bars each.
        digits: After the point of every value.
    """
    most = max((bar.high for _, bars in groups for bar in bars), default=1.0) or 1.0
    lines, y = [], _TOP
    for heading, bars in groups:
        lines.append(_text(4, y + 12, heading, weight="bold"))
        y += _BAR + 5
        for bar in bars:
            lines += _drawn(bar, y, (_WIDTH - _LABEL - _VALUE) / most, f"{bar.value:,.{digits}f}")
            y += _BAR + 3
        y += _GAP
    head = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y}" width="{_WIDTH}" height="{y}" '
            'font-family="sans-serif" font-size="12">'
        ),
        f"<title>{escape(title)}</title>",
        f'<rect width="{_WIDTH}" height="{y}" fill="white"/>',
        _text(4, 18, f"{title} ({unit})", size=14, weight="bold"),
    ]
    return "\n".join([*head, *lines, "</svg>"]) + "\n"


def _drawn(bar: Bar, y: int, scale: float, number: str) -> list[str]:
    middle = y + _BAR / 2
    left, right = _LABEL + bar.low * scale, _LABEL + bar.high * scale
    return [
        _text(_LABEL - 6, y + 12, bar.label, anchor="end"),
        (
            f'<rect x="{_LABEL}" y="{y}" width="{bar.value * scale:.1f}" height="{_BAR}" '
            f'fill="{_COLOURS[bar.base]}" opacity="{0.45 if bar.pale else 1}"/>'
        ),
        f'<path d="M{left:.1f} {middle}H{right:.1f}" stroke="black" stroke-width="1"/>',
        _text(max(right, _LABEL + bar.value * scale) + 6, y + 12, number),
    ]


def _text(x: float, y: float, text: str, *, size: int = 12, anchor: str = "start", weight: str = "normal") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}" '
        f'fill="#202124">{escape(text)}</text>'
    )
