"""Charts in SVG, written by hand: horizontal bars with a whisker from the least to the most, and lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


_INKS = ("#3c4043", "#1a73e8", "#188038", "#d56e0c")
_HEIGHT, _LEFT, _RIGHT, _HEAD, _FOOT = 340, 50, 110, 40, 30


@dataclass(frozen=True, slots=True)
class Bar:
    """One value with its range; ``base`` selects the colour, and ``pale`` marks a second bar of the same base."""

    label: str
    base: str
    low: float
    value: float
    high: float
    pale: bool = False


def chart(title: str, unit: str, groups: Sequence[tuple[str, Sequence[Bar]]], *, digits: int = 0) -> str:
    """Make the text of an SVG file with horizontal bars.

    Args:
        title: The title of the chart.
        unit: The unit of all values.
        groups: Pairs of a heading and its bars.
        digits: The number of digits after the point.
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


def curves(title: str, unit: str, lines: Mapping[str, Sequence[float]], *, low: float, high: float) -> str:
    """Make the text of an SVG file with a line for each series; values are drawn at x = 1, 2, 3...

    Args:
        title: The title of the chart.
        unit: The unit of all values.
        lines: At most four series by name, of equal lengths; values beyond ``low`` and ``high`` are drawn at the edge.
        low: The least value of the axis.
        high: The greatest value of the axis.
    """
    count = max(map(len, lines.values()))
    wide, tall = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _HEAD - _FOOT

    def across(index: int) -> float:
        return _LEFT + wide * index / max(count - 1, 1)

    def down(value: float) -> float:
        return _HEAD + tall * (1 - (min(max(value, low), high) - low) / (high - low))

    drawn = [_text(4, 18, f"{title} ({unit})", size=14, weight="bold")]
    for step in range(5):
        value = low + (high - low) * step / 4
        drawn.append(f'<path d="M{_LEFT} {down(value):.1f}H{_LEFT + wide}" stroke="#dadce0" stroke-width="1"/>')
        drawn.append(_text(_LEFT - 6, down(value) + 4, f"{value:.2f}", anchor="end"))
    drawn += [_text(across(at - 1), _HEIGHT - 10, str(at), anchor="middle") for at in (1, *range(5, count + 1, 5))]
    for at, (ink, (name, values)) in enumerate(zip(_INKS, lines.items(), strict=False)):
        points = " ".join(f"{across(index):.1f},{down(value):.1f}" for index, value in enumerate(values))
        drawn.append(f'<polyline points="{points}" fill="none" stroke="{ink}" stroke-width="2"/>')
        y = _HEAD + 14 + 20 * at
        drawn.append(f'<path d="M{_LEFT + wide + 10} {y - 4}h16" stroke="{ink}" stroke-width="2"/>')
        drawn.append(_text(_LEFT + wide + 30, y, name))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" '
        'font-family="sans-serif" font-size="12">'
    )
    rest = [f"<title>{escape(title)}</title>", f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>', *drawn]
    return "\n".join([head, *rest, "</svg>"]) + "\n"
