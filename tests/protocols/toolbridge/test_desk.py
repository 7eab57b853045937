"""The desk: which sessions it knows, how long, and what runs in them."""

from __future__ import annotations

import pytest

from invoker.core.store import Reason
from invoker.protocols.toolbridge.errors import BridgeError, Kind
from invoker.protocols.toolbridge.settings import BridgeSettings
from tests.protocols.toolbridge.desks import SECOND, a_desk, a_space, began, known


def test_T007_each_finished_operation_prolongs_a_session() -> None:
    """It lives for its time to live after the last use."""
    desk = a_desk()
    session = known(desk)
    desk.now += 59 * SECOND
    desk.end(began(desk, session))
    desk.now += 59 * SECOND
    assert desk.find("s1") is session
    desk.now += 1 * SECOND
    assert desk.find("s1") is None


def test_T008_an_expired_session_is_not_found_before_anybody_swept() -> None:
    """Whoever asks goes to the store."""
    desk = a_desk()
    known(desk)
    desk.now += 60 * SECOND
    assert desk.find("s1") is None


def test_T010_a_session_in_which_something_runs_does_not_expire() -> None:
    """It expires its time to live after that has ended."""
    desk = a_desk()
    session = known(desk)
    running = began(desk, session)
    desk.now += 1000 * SECOND
    assert desk.find("s1") is session
    desk.end(running)
    desk.now += 59 * SECOND
    assert desk.find("s1") is session


def test_T058_a_session_runs_no_more_tool_calls_than_it_may() -> None:
    """One more fails at once; what is no tool call does not count; a place that is free again is taken."""
    desk = a_desk()
    session = known(desk, max_concurrent_tools=2)
    first = began(desk, session)
    began(desk, session)
    began(desk, session, is_tool=False)
    with pytest.raises(BridgeError) as caught:
        began(desk, session)
    assert caught.value.kind is Kind.EXHAUSTED
    assert caught.value.details == {"code": "concurrency", "limit": "2", "scope": "session"}
    desk.end(first)
    desk.end(first)
    began(desk, session)
    assert session.tools == 2
    with pytest.raises(BridgeError):
        began(desk, session)


def test_the_operator_limits_sessions_that_say_nothing() -> None:
    """The session's own word wins."""
    desk = a_desk(BridgeSettings(concurrent_tools=1))
    assert known(desk, "a").max_tools == 1
    assert known(desk, "b", max_concurrent_tools=5).max_tools == 5


def test_the_store_hears_of_a_use_once_until_it_was_told() -> None:
    """Further uses are told with the next word."""
    desk = a_desk()
    session = known(desk)
    desk.end(began(desk, session))
    desk.end(began(desk, session))
    assert desk.noted.told == [("watch", "s1"), ("touch", "s1")]
    session.is_stale = False
    desk.end(began(desk, session))
    assert desk.noted.told[2:] == [("touch", "s1")]


def test_T013_a_session_that_is_in_use_is_closed_by_force_only() -> None:
    """Otherwise nothing changes."""
    desk = a_desk()
    session = known(desk)
    running = began(desk, session)
    assert desk.close(session, is_forced=False) == 1
    assert desk.find("s1") is session
    assert desk.close(session, is_forced=True) == 1
    with pytest.raises(BridgeError) as caught:
        began(desk, session)
    assert caught.value.details["code"] == "cleaned"
    desk.end(running)
    assert desk.noted.told[-1] == ("idle", "s1")


def test_a_session_that_the_store_has_kept_is_open_again() -> None:
    """Calls may begin."""
    desk = a_desk()
    session = known(desk)
    assert desk.close(session, is_forced=False) == 0
    assert desk.find("s1") is None
    desk.reopen(session)
    desk.end(began(desk, session))


def test_a_session_that_is_being_dropped_is_not_known_anew() -> None:
    """The store may still have it."""
    desk = a_desk()
    desk.close(known(desk), is_forced=False)
    with pytest.raises(BridgeError):
        known(desk)


def test_T020_a_session_that_was_made_anew_elsewhere_is_another_one() -> None:
    """Another process has cleaned it up and made it again, which this one has not heard of yet."""
    desk = a_desk()
    old = desk.adopt(a_space())
    old.agents["a"] = object()
    assert desk.adopt(a_space()) is old
    new = desk.adopt(a_space(created_ns=desk.now + SECOND))
    assert new is not old
    assert not new.agents
    assert desk.find("s1") is new


def test_T006_zero_is_what_the_operator_says() -> None:
    """A number that the host gives counts instead."""
    desk = a_desk(BridgeSettings(concurrent_tools=3))
    assert desk.adopt(a_space("s1")).max_tools == 3
    assert desk.adopt(a_space("s2", max_concurrent_tools=5)).max_tools == 5


def test_T020_a_session_made_anew_begins_empty() -> None:
    """What the desk knew of the one before is not its own."""
    desk = a_desk()
    old = known(desk)
    old.agents["a"] = object()
    desk.remove(old, Reason.DROPPED)
    assert not old.agents
    new = desk.adopt(a_space(created_ns=2000 * SECOND))
    assert new is not old
    assert desk.find("s1") is new
    assert new.gone is None


def test_a_session_that_another_process_used_lives_on() -> None:
    """The store's word of its last use counts as well."""
    desk = a_desk()
    session = known(desk)
    desk.now += 70 * SECOND
    assert desk.find("s1") is None
    space = a_space()
    used = type(space)(space.name, space.about, 60.0, space.created_ns, desk.now, 0, 0, 0)
    assert desk.adopt(used) is session
    assert desk.find("s1") is session
