"""Shows a simulation: as text, as JSON, and by a progress bar on a terminal."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final, TextIO

import msgspec

from invoker.protocols.federated.verbs.simulation.results import Result, Times, Totals

_WIDTH: Final = 24
_AGAIN_S: Final = 0.1


class Bar:
    """A progress bar on the last line of a terminal; without a terminal it does nothing.

    Args:
        out: The stream on which the bar is drawn.
        rounds: The number of rounds.
    """

    def __init__(self, out: TextIO, rounds: int) -> None:
        self._out, self._rounds = out, rounds
        self._is_shown = out.isatty()
        self._drawn_at = 0.0
        self._length = 0

    def tick(self, rounds: int, totals: Totals) -> None:
        """Redraw the bar, unless it was drawn a moment ago."""
        now = time.monotonic()
        if not self._is_shown or now - self._drawn_at < _AGAIN_S:
            return
        self._drawn_at = now
        full = round(_WIDTH * min(1.0, rounds / max(1, self._rounds)))
        bar = "#" * full + "." * (_WIDTH - full)
        text = (
            f"[{bar}] {rounds}/{self._rounds} rounds, {totals.conversations:,} conversations, {totals.seconds:,.0f} s"
        )
        self._out.write(f"\r{text.ljust(self._length)}")
        self._out.flush()
        self._length = len(text)

    def clear(self) -> None:
        """Remove the bar, so that a line can be printed."""
        if self._length:
            self._out.write(f"\r{' ' * self._length}\r")
            self._out.flush()
            self._length = 0


def round_text(one: Result) -> str:
    """The result of a round as a few lines of text."""
    end = one.outcome + (f" ({one.why})" if one.why else "")
    lost = [f"{many} {name}" for name in ("failed", "invalid", "late", "cut") if (many := getattr(one, name))]
    dropped = f"{one.dropped} dropped" + (f" ({_counts(one.left)})" if one.left else "")
    counts = ", ".join([f"{one.accepted} accepted", f"{one.reported} reported", dropped, *lost])
    lines = [f"{one.population}/{one.task} round {one.round}: {end} after {one.seconds:.1f} s: {counts}"]
    if one.summed:
        lines.append(f"  in the sum          {one.summed} updates")
    if one.rejected:
        lines.append(f"  rejected            {_counts(one.rejected)}")
    lines.append(f"  checkin to accept   {_times(one.checkin_to_accept_s)}")
    lines.append(f"  accept to report    {_times(one.accept_to_report_s)}")
    lines.append(f"  bytes               {one.bytes_up:,} up, {one.bytes_down:,} down")
    if one.metric is not None:
        lines.append(f"  metric              {one.metric:.6g}")
    return "\n".join(lines)


def totals_text(totals: Totals, rounds: list[Result], wall_s: float) -> str:
    """The results of the simulation as a few lines of text."""
    committed = sum(one.outcome == "committed" for one in rounds)
    return "\n".join([
        f"{committed} of {len(rounds)} rounds committed in {totals.seconds:,.1f} simulated seconds, {wall_s:.1f} real",
        f"  conversations       {totals.conversations:,}: {_counts(totals.ends)}",
        f"  bytes               {totals.bytes_up:,} up, {totals.bytes_down:,} down",
    ])  # fmt: skip


def report_json(given: Mapping[str, Any], totals: Totals, rounds: list[Result], why: str) -> str:
    """The report as JSON, which is the same for the same seed."""
    told = {"given": given, "rounds": rounds, "totals": totals, "ended": why}
    return msgspec.json.format(msgspec.json.encode(told, order="sorted"), indent=2).decode()


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{many:,} {name}" for name, many in sorted(counts.items())) or "none"


def _times(of: Times) -> str:
    if of.min is None:
        return "nothing to measure"
    return "  ".join(f"{name} {getattr(of, name):.3f}" for name in Times.__struct_fields__) + " s"
