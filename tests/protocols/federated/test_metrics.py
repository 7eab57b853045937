"""What `/metrics` tells of federated rounds."""

from __future__ import annotations

from invoker.protocols.federated.metrics import COUNTERS, DURATION, GAUGES, round_families, round_numbers
from invoker.telemetry.board import Numbers
from invoker.telemetry.metrics import Metrics
from tests.gendocs import table
from tests.opsdoc import metrics_page


def text_of(numbers: Numbers) -> str:
    return Metrics(lambda: numbers, lambda: [round_families]).render()[1].decode()


def test_F141_labels_are_told_as_they_are() -> None:
    """Names of populations may have any signs; those of several workers are added up."""
    counts = {"invoker_round_accepted": {("of blanks", 'a"b'): 2.0}, "invoker_round_rejected": {("x", "full"): 1.0}}
    numbers = Numbers(round_numbers(counts), round_numbers({"invoker_round_sessions": {("waiting",): 3}}))
    text = text_of(numbers.plus(numbers))
    assert 'invoker_round_accepted_total{population="of blanks",task="a\\"b"} 4.0' in text
    assert 'invoker_round_rejected_total{population="x",reason="full"} 2.0' in text
    assert 'invoker_round_sessions{state="waiting"} 6.0' in text


def test_F141_how_long_rounds_took_is_a_histogram() -> None:
    """Each bucket has those of the ones before it."""
    found = {("p", "t", "1"): 2.0, ("p", "t", "15"): 1.0, ("p", "t", "+Inf"): 1.0, ("p", "t", "sum"): 4000.0}
    text = text_of(Numbers(round_numbers({DURATION: found}), {}))
    for bound, count in (("1", 2), ("5", 2), ("15", 3), ("3600", 3), ("+Inf", 4)):
        assert f'{DURATION}_bucket{{le="{bound}",population="p",task="t"}} {count:.1f}' in text
    assert f'{DURATION}_sum{{population="p",task="t"}} 4000.0' in text


def test_without_rounds_nothing_is_told_of_them() -> None:
    """A process that serves none has no such family."""
    assert "invoker_round" not in text_of(Numbers())


def test_the_reference_has_every_metric() -> None:
    """With its labels."""
    page = "\n".join(metrics_page("", table)).partition("Where federated rounds are served")[2]
    for name in (*(f"{one}_total" for one in COUNTERS), *GAUGES, f"{DURATION}_bucket"):
        assert f"`{name}" in page
