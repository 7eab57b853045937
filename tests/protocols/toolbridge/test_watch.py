"""WatchSessionVariables, against a store in memory."""

from __future__ import annotations

import gc
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.codecs.anyvalue import pack, unpack
from invoker.core import store
from invoker.core.frames import SharedFrame
from invoker.core.steps import StoreChanged
from invoker.core.store import Change, Reason, Refused
from invoker.errors import Status
from invoker.protocols.toolbridge.watch import WatchSessionVariables, _update
from tests.protocols.toolbridge.hosts import SECOND
from tests.protocols.toolbridge.varied import Varied


def told(updates: list[pb.VariableUpdate]) -> list[tuple[str, str, object]]:
    """Names, operations and values."""
    values = (unpack(one.value.SerializeToString()) if one.HasField("value") else "absent" for one in updates)
    return [(one.name, one.operation, value) for one, value in zip(updates, values, strict=True)]


def test_T127_the_values_that_are_there_come_first():
    """As "set", with the time of their own update; then each later change, none twice."""
    varied = Varied()
    varied.put("b", 1)
    varied.put("a", 2)
    before = varied.host_sessions.now
    varied.host_sessions.now += SECOND
    with_initial, without = varied.watch(initial=True), varied.watch()
    varied.put("a", 3)
    updates = with_initial.tell()
    assert told(updates) == [("a", "set", 2), ("b", "set", 1), ("a", "update", 3)]
    times = [one.timestamp.seconds * SECOND + one.timestamp.nanos for one in updates]
    assert times == [before, before, before + SECOND]
    assert told(without.tell()) == [("a", "update", 3)]


_WRITES = st.lists(st.tuples(st.sampled_from("ab"), st.one_of(st.none(), st.integers(0, 9))), max_size=30)


@given(_WRITES, st.integers(0, 30))
def test_T127_T130_no_change_is_lost_or_told_twice(writes, begins):
    """Whenever the watch begins, what it tells gives the state at its end, one update for each write."""
    varied, state, count = Varied(), dict[str, int](), 0
    for number, (name, value) in enumerate(writes):
        if number == begins:
            break
        varied.put(name, *([] if value is None else [value]))
        state.pop(name, None)
        if value is not None:
            state[name] = value
    watch = varied.watch(initial=True)
    first = len(state)
    for name, value in writes[begins:]:
        count += value is not None or name in state
        varied.put(name, *([] if value is None else [value]))
        state.pop(name, None)
        if value is not None:
            state[name] = value
    updates = told(watch.tell())
    assert len(updates) == first + count
    seen: dict[str, object] = {}
    for name, operation, value in updates:
        assert operation == ("delete" if value == "absent" else "update" if name in seen else "set")
        seen.pop(name, None)
        if value != "absent":
            seen[name] = value
    assert seen == state


def test_T128_T132_operations_say_what_happened():
    """Made, replaced, also by an equal value, and removed."""
    varied = Varied()
    watch = varied.watch()
    for value in ([1], [1], [], [1]):
        varied.put("a", *value)
    assert told(watch.tell()) == [("a", "set", 1), ("a", "update", 1), ("a", "delete", "absent"), ("a", "set", 1)]


def test_T129_no_names_mean_all_and_a_name_may_come_later():
    """What is not named is not told."""
    varied = Varied()
    everything, later = varied.watch(), varied.watch("later", initial=True)
    varied.put("a", 1)
    varied.put("later", 2)
    assert [one.name for one in everything.tell()] == ["a", "later"]
    assert told(later.tell()) == [("later", "set", 2)]


def test_T130_who_is_slow_ends_with_the_same_state():
    """More changes than may wait leave the last of each variable, and its deletion."""
    varied = Varied()
    watch = varied.watch()
    varied.put("gone", 1)
    varied.put("gone")
    for number in range(5000):
        varied.put("ab"[number % 2], number)
    updates = watch.tell()
    assert len(updates) <= store._NEWS
    final = {one.name: one for one in updates}
    assert final["gone"].operation == "delete"
    assert [unpack(final[name].value.SerializeToString()) for name in "ab"] == [4998, 4999]


def test_T128_T130_what_is_joined_is_told_as_it_looks_to_the_watcher():
    """A variable that is new to it was set, however often it was updated meanwhile; one that it knows was updated."""
    varied = Varied()
    varied.put("known", 0)
    watch = varied.watch()
    varied.put("new", 0)
    for number in range(1, 3000):
        varied.put("new", number)
        varied.put("known", number)
    updates = watch.tell()
    assert len(updates) <= store._NEWS
    first = {one.name: one.operation for one in reversed(updates)}
    assert first == {"new": "set", "known": "update"}


@pytest.mark.parametrize("code", ["cleaned", "expired"])
def test_T131_the_end_of_the_session_ends_the_watch(code):
    """With what was told before, and the reason in the trailer; a watch does not keep it from expiring (T-010)."""
    varied = Varied()
    watch = varied.watch()
    varied.put("a", 1)
    if code == "cleaned":
        varied.drop()
    else:
        varied.host_sessions.now += 60 * SECOND
        varied.store.sweep()
    assert [one.name for one in watch.tell()] == ["a"]
    assert watch.close is not None
    assert watch.close.error is not None
    assert watch.close.error.status is Status.NOT_FOUND
    ((name, info),) = watch.close.trailers
    assert isinstance(info, bytes)
    told_info = pb.ErrorInfo.FromString(info)
    assert (name, told_info.type, told_info.details["code"]) == ("dspex-error-bin", "SessionExpired", code)


def test_T131_a_watch_of_no_session_fails():
    """At once."""
    varied = Varied()
    varied.drop()
    watch = varied.watch()
    assert watch.tell() == []
    assert watch.close is not None
    assert watch.close.error is not None


def test_T125_names_are_checked():
    """All of them."""
    request = pb.WatchVariablesRequest(session_id="s1", variable_names=["a", "\n"])
    status, info = Varied().refusal(WatchSessionVariables, request)
    assert (status, info.details["field"]) == (Status.INVALID_ARGUMENT, "variable_name")


def test_T125_no_more_names_are_watched_than_a_session_may_have():
    """Each is checked, on the loop."""
    varied = Varied()
    names = [f"n{number}" for number in range(10_001)]
    request = pb.WatchVariablesRequest(session_id="s1", variable_names=names)
    status, info = varied.refusal(WatchSessionVariables, request)
    assert (status, info.details["field"]) == (Status.INVALID_ARGUMENT, "variable_names")
    del request.variable_names[-1]
    assert varied.talk(WatchSessionVariables, request).close is None


def test_a_watch_ends_with_unavailable_when_changes_may_be_missed():
    """Its caller watches again, with the values that are there."""
    watch = Varied().watch()
    (close,) = watch.session.deliver(StoreChanged("toolbridge/s1", Refused(Reason.UNAVAILABLE)))
    assert close.error.status is Status.UNAVAILABLE  # type: ignore[union-attr]


_LARGE = 1_000_000


def test_many_watches_of_a_large_variable_share_what_they_send():
    """Each change is one frame, also as the existing value of watches that begin at different times."""
    varied = Varied()
    varied.put("a", bytes(_LARGE))
    watches = [varied.watch(initial=True) for _ in range(3)]
    (first,) = watches[0].frames()
    assert isinstance(first, SharedFrame)
    watches.append(varied.watch(initial=True))
    assert all(one.frames()[0] is first for one in watches[1:])
    varied.put("a", b"x" * _LARGE)
    (second,) = watches[0].frames()
    assert second is not first
    assert all(one.frames()[0] is second for one in watches[1:])
    (late,) = varied.watch(initial=True).frames()
    assert [pb.VariableUpdate.FromString(one.data).operation for one in (second, late)] == ["update", "set"]


def test_what_watches_have_shared_is_freed_with_the_last_wire_that_sends_it():
    """Although the watches go on; without the garbage collector."""
    varied = Varied()
    watches = [varied.watch() for _ in range(3)]
    gc.disable()
    try:
        for letter in (b"a", b"b"):
            varied.put("a", letter * _LARGE)
            sent = [frame for one in watches for frame in one.frames()]
            gone = weakref.ref(sent[0])
            assert len(set(map(id, sent))) == 1
            del sent[1:]
            assert gone() is sent[0]
            sent.clear()
            assert gone() is None
            assert len(varied.host_sessions.updates) == 0
    finally:
        gc.enable()


def test_watches_share_the_newest_of_each_variable_and_operation():
    """So one that is told several changes, before others are told any, takes nothing from them."""
    varied = Varied()
    watches = [varied.watch() for _ in range(3)]
    for name in "aba":
        varied.put(name, bytes(_LARGE))
    a, b, again = watches[0].frames()
    assert len({id(one) for one in (a, b, again)}) == 3
    for one in watches[1:]:
        assert [x is y for x, y in zip(one.frames(), (a, b, again), strict=True)] == [True] * 3


def test_what_differs_for_watches_is_not_shared():
    """Two variables with one value, and one that was deleted and made again in the same nanosecond."""
    varied = Varied()
    watches = [varied.watch(), varied.watch("b")]
    for name in "ab":
        varied.put(name, bytes(_LARGE))
    a, b = watches[0].frames()
    assert (a is b, watches[1].frames()[0] is b) == (False, True)
    varied.put("a")
    varied.put("a", b"x" * _LARGE)
    assert told(watches[0].tell()) == [("a", "delete", "absent"), ("a", "set", b"x" * _LARGE)]
    assert told(varied.watch("a", initial=True).tell()) == [("a", "set", b"x" * _LARGE)]


@pytest.mark.parametrize("size", [0, 1, 64 * 1024, _LARGE])
@pytest.mark.parametrize("is_new", [True, False])
def test_a_frame_that_is_shared_has_the_bytes_of_the_message(size, is_new):
    """As protobuf writes them."""
    varied = Varied()
    watch = varied.watch()
    change = Change("var/näme", pack(b"x" * size), 1_700_000_000_123_456_789, is_new=is_new)
    (send,) = watch.session.deliver(StoreChanged("toolbridge/s1", change))
    frame = send.frame
    assert isinstance(frame, SharedFrame) == (size >= 64 * 1024)
    assert (frame.data if isinstance(frame, SharedFrame) else frame) == _update(change)
