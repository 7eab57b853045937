"""Admission, time limits, several populations, drain."""

from __future__ import annotations

from invoker.errors import DeadlineExceeded
from invoker.protocols.federated.words import Over, Rejected
from tests.protocols.federated.house import House, population


def test_F014_a_device_that_says_nothing_is_let_go():
    """After 60 s with DEADLINE_EXCEEDED."""
    desk = House(population())
    silent = desk.client()
    desk.passes(59)
    assert silent.is_waiting
    desk.passes(1)
    assert isinstance(silent.error, DeadlineExceeded)


def test_F015_a_device_that_does_not_half_close_is_let_go():
    """5 s after its answer, with OK."""
    desk = House(population())
    (rejected,) = desk.clients(3)[2:]
    assert rejected.notices == [Rejected("full")]
    desk.passes(4.9)
    assert len(rejected.notices) == 1
    desk.passes(0.1)
    assert rejected.notices[1:] == [Over(None)]
