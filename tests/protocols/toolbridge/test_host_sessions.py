"""`HostSessions`: which sessions it knows, how long, and what runs in them."""

from __future__ import annotations

import pytest

from invoker.core.store import Reason
from invoker.protocols.toolbridge.errors import BridgeError, Kind
from invoker.protocols.toolbridge.settings import BridgeSettings
from tests.protocols.toolbridge.hosts import SECOND, a_space, began, known, new_host_sessions


def test_T007_each_finished_operation_prolongs_a_session() -> None:
    """It lives for its time to live after the last use."""
    host_sessions = new_host_sessions()
    session = known(host_sessions)
    host_sessions.now += 59 * SECOND
    host_sessions.end(began(host_sessions, session))
    host_sessions.now += 59 * SECOND
    assert host_sessions.find("s1") is session
    host_sessions.now += 1 * SECOND
    assert host_sessions.find("s1") is None


def test_T008_an_expired_session_is_not_found_before_anybody_swept() -> None:
    """Whoever asks goes to the store."""
    host_sessions = new_host_sessions()
    known(host_sessions)
    host_sessions.now += 60 * SECOND
    assert host_sessions.find("s1") is None


def test_T010_a_session_in_which_something_runs_does_not_expire() -> None:
    """It expires its time to live after that has ended."""
    host_sessions = new_host_sessions()
    session = known(host_sessions)
    running = began(host_sessions, session)
    host_sessions.now += 1000 * SECOND
    assert host_sessions.find("s1") is session
    host_sessions.end(running)
    host_sessions.now += 59 * SECOND
    assert host_sessions.find("s1") is session


def test_T058_a_session_runs_no_more_tool_calls_than_it_may() -> None:
    """One more fails at once; what is no tool call does not count; a place that is free again is taken."""
    host_sessions = new_host_sessions()
    session = known(host_sessions, max_concurrent_tools=2)
    first = began(host_sessions, session)
    began(host_sessions, session)
    began(host_sessions, session, is_tool=False)
    with pytest.raises(BridgeError) as caught:
        began(host_sessions, session)
    assert caught.value.kind is Kind.EXHAUSTED
    assert caught.value.details == {"code": "concurrency", "limit": "2", "scope": "session"}
    host_sessions.end(first)
    host_sessions.end(first)
    began(host_sessions, session)
    assert session.tools == 2
    with pytest.raises(BridgeError):
        began(host_sessions, session)


def test_the_operator_limits_sessions_that_say_nothing() -> None:
    """The session's own word wins."""
    host_sessions = new_host_sessions(BridgeSettings(concurrent_tools=1))
    assert known(host_sessions, "a").max_tools == 1
    assert known(host_sessions, "b", max_concurrent_tools=5).max_tools == 5


def test_the_store_hears_of_a_use_once_until_it_was_told() -> None:
    """Further uses are told with the next word."""
    host_sessions = new_host_sessions()
    session = known(host_sessions)
    host_sessions.end(began(host_sessions, session))
    host_sessions.end(began(host_sessions, session))
    assert host_sessions.noted.told == [("watch", "s1"), ("touch", "s1")]
    session.is_stale = False
    host_sessions.end(began(host_sessions, session))
    assert host_sessions.noted.told[2:] == [("touch", "s1")]


def test_T013_a_session_that_is_in_use_is_closed_by_force_only() -> None:
    """Otherwise nothing changes."""
    host_sessions = new_host_sessions()
    session = known(host_sessions)
    running = began(host_sessions, session)
    assert host_sessions.close(session, is_forced=False) == 1
    assert host_sessions.find("s1") is session
    assert host_sessions.close(session, is_forced=True) == 1
    with pytest.raises(BridgeError) as caught:
        began(host_sessions, session)
    assert caught.value.details["code"] == "cleaned"
    host_sessions.end(running)
    assert host_sessions.noted.told[-1] == ("idle", "s1")


def test_a_session_that_the_store_has_kept_is_open_again() -> None:
    """Calls may begin."""
    host_sessions = new_host_sessions()
    session = known(host_sessions)
    assert host_sessions.close(session, is_forced=False) == 0
    assert host_sessions.find("s1") is None
    host_sessions.reopen(session)
    host_sessions.end(began(host_sessions, session))


def test_a_session_that_is_being_dropped_is_not_known_anew() -> None:
    """The store may still have it."""
    host_sessions = new_host_sessions()
    host_sessions.close(known(host_sessions), is_forced=False)
    with pytest.raises(BridgeError):
        known(host_sessions)


def test_T020_a_session_that_was_made_anew_elsewhere_is_another_one() -> None:
    """Another process has cleaned it up and made it again, which this one has not heard of yet."""
    host_sessions = new_host_sessions()
    old = host_sessions.adopt(a_space())
    old.agents["a"] = object()
    assert host_sessions.adopt(a_space()) is old
    new = host_sessions.adopt(a_space(created_ns=host_sessions.now + SECOND))
    assert new is not old
    assert not new.agents
    assert host_sessions.find("s1") is new


def test_T006_zero_is_what_the_operator_says() -> None:
    """A number that the host gives counts instead."""
    host_sessions = new_host_sessions(BridgeSettings(concurrent_tools=3))
    assert host_sessions.adopt(a_space("s1")).max_tools == 3
    assert host_sessions.adopt(a_space("s2", max_concurrent_tools=5)).max_tools == 5


def test_T020_a_session_made_anew_begins_empty() -> None:
    """What `HostSessions` knew of the one before is not its own."""
    host_sessions = new_host_sessions()
    old = known(host_sessions)
    old.agents["a"] = object()
    host_sessions.remove(old, Reason.DROPPED)
    assert not old.agents
    new = host_sessions.adopt(a_space(created_ns=2000 * SECOND))
    assert new is not old
    assert host_sessions.find("s1") is new
    assert new.gone is None


def test_a_session_that_another_process_used_lives_on() -> None:
    """The store's word of its last use counts as well."""
    host_sessions = new_host_sessions()
    session = known(host_sessions)
    host_sessions.now += 70 * SECOND
    assert host_sessions.find("s1") is None
    space = a_space()
    used = type(space)(space.name, space.about, 60.0, space.created_ns, host_sessions.now, 0, 0, 0)
    assert host_sessions.adopt(used) is session
    assert host_sessions.find("s1") is session
