"""What the sweeper looks after; its beats are real, tests wait for what they do."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from invoker.execution.pace.gate import Ticket
from invoker.execution.pace.sweeper import LOOK_S, Sweeper

LIMIT_S = 5.0


class HeldCall:
    """A call that holds what a test gives it; it runs a hook whenever somebody looks at what is held."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.is_swept = False
        self.seen: bytes | None = None
        self.flushed: list[bytes] = []
        self.has_flushed = threading.Semaphore(0)
        self.on_look: Callable[[], None] = lambda: None
        self.is_forgotten = threading.Event()
        self.error: Exception | None = None
        self._held: bytes | None = None

    @property
    def held(self) -> bytes | None:
        held = self._held
        self.on_look()
        return held

    def hold(self, frame: bytes | None, sweeper: Sweeper) -> None:
        """As a call's own thread does it."""
        self._held = frame
        if not self.is_swept:
            sweeper.watch(self)

    def send(self) -> None:
        """The next frame came in time."""
        self._held = None

    def flush(self) -> None:
        assert self.lock.locked()
        if self.error is not None:
            raise self.error
        assert self._held is not None
        self.flushed.append(self._held)
        self._held = None
        self.has_flushed.release()


class Watched:
    """A conversation that counts the looks after it."""

    def __init__(self, looks: int = 10**6, error: Exception | None = None) -> None:
        self.left = looks
        self.error = error
        self.looked = threading.Semaphore(0)

    def sweep(self, now: float) -> bool:
        self.left -= 1
        self.looked.release()
        if self.error is not None:
            raise self.error
        return self.left > 0


@pytest.fixture
def sweeper() -> Iterator[Sweeper]:
    made = Sweeper()
    yield made
    made.close()


@pytest.fixture
def awake(sweeper: Sweeper) -> Sweeper:
    """One whose thread runs."""
    sweeper.add(Watched())
    return sweeper


def test_what_is_held_is_sent_after_a_beat(awake):
    """Each frame of its own."""
    call = HeldCall()
    for frame in (b"1", b"2", b"3"):
        call.hold(frame, awake)
        assert call.has_flushed.acquire(timeout=LIMIT_S)
    assert call.flushed == [b"1", b"2", b"3"]


def test_a_frame_is_not_sent_at_the_first_beat_that_sees_it(awake):
    """One that was held just before a beat still has until the next one."""
    call, seen = HeldCall(), []
    call.on_look = lambda: seen.append(call.seen)
    call.hold(b"1", awake)
    assert call.has_flushed.acquire(timeout=LIMIT_S)
    assert seen[0] is None  # the first beat only takes note
    assert seen[1] == b"1"


def test_frames_that_change_from_beat_to_beat_are_left_to_their_thread(awake):
    """A call in good use is never flushed by the sweeper."""
    call, beats, enough = HeldCall(), [], threading.Event()

    def replace() -> None:
        beats.append(1)
        call._held = b"%d" % len(beats)
        if len(beats) == 20:
            enough.set()

    call.on_look = replace
    call.hold(b"0", awake)
    assert enough.wait(LIMIT_S)
    assert call.flushed == []


def test_a_line_is_forgotten_after_two_empty_beats_and_comes_back(awake):
    """Its next held frame brings it back."""
    call = HeldCall()
    for _ in range(2):
        call.hold(b"1", awake)
        assert call.has_flushed.acquire(timeout=LIMIT_S)
        until_forgotten(awake, call)
        assert not call.is_swept
    assert call.flushed == [b"1", b"1"]


def until_forgotten(sweeper: Sweeper, call: HeldCall) -> None:
    """Wait until nothing is hot; another call's beats tell the time."""
    for _ in range(1000):
        if call not in sweeper._hot:
            return
        other = HeldCall()
        other.hold(b"x", sweeper)
        assert other.has_flushed.acquire(timeout=LIMIT_S)
    pytest.fail("the line is never forgotten")


def test_a_frame_that_is_held_in_the_very_moment_of_forgetting_is_sent(awake):
    """The sweeper says that it forgets and looks then; the call holds and looks then."""
    call = HeldCall()
    is_caught = threading.Event()

    def hold_while_forgotten() -> None:
        if call.flushed and not call.is_swept and not is_caught.is_set() and awake._lock.locked():
            is_caught.set()
            # What its thread does has come as far as the look at `is_swept`, which said yes a moment ago.
            call._held = b"2"

    call.on_look = hold_while_forgotten  # before the call is held, for it is forgotten two beats after it was flushed
    call.hold(b"1", awake)
    assert call.has_flushed.acquire(timeout=LIMIT_S)
    assert is_caught.wait(LIMIT_S)
    call.on_look = lambda: None
    if not call.is_swept:
        awake.watch(call)
    assert call.has_flushed.acquire(timeout=LIMIT_S)
    assert call.flushed == [b"1", b"2"]


def test_a_frame_that_was_held_before_the_sweeper_forgets_keeps_its_line(awake):
    """Between the beat's look and the forgetting: nobody calls `watch`, since the call was swept when it looked."""
    call, looks = HeldCall(), []

    def hold_late() -> None:
        looks.append(call.is_swept)
        if len(looks) == 1:
            call._held = b"1"  # after this look has read nothing

    call.on_look = hold_late
    awake.watch(call)
    assert call.has_flushed.acquire(timeout=LIMIT_S)
    assert call.is_swept
    assert call.flushed == [b"1"]


def test_a_line_that_fails_takes_nothing_from_the_others(awake, caplog):
    """The sweeper's thread outlives it."""
    broken, good = HeldCall(), HeldCall()
    broken.error = RuntimeError("a broken line")
    broken.hold(b"1", awake)
    for _ in range(3):
        good.hold(b"1", awake)
        assert good.has_flushed.acquire(timeout=LIMIT_S)
    assert "could not be" in caplog.text
    assert broken not in awake._hot


def test_conversations_are_looked_after_until_they_are_over(sweeper):
    """One that says that it is over, or fails, is not looked at again."""
    short, long, broken = Watched(looks=1), Watched(), Watched(error=ValueError("boom"))
    for one in (short, long, broken):
        sweeper.add(one)
    for _ in range(3):
        assert long.looked.acquire(timeout=LIMIT_S)
    assert short.left == 0
    assert broken.left == 10**6 - 1
    assert sweeper._conversations == {long}


def test_a_failed_look_is_logged(sweeper, caplog):
    """With its traceback."""
    broken, long = Watched(error=ValueError("boom")), Watched()
    sweeper.add(broken)
    sweeper.add(long)
    assert long.looked.acquire(timeout=LIMIT_S)
    assert long.looked.acquire(timeout=LIMIT_S)
    assert "a conversation could not be checked" in caplog.text
    assert "boom" in caplog.text


def test_looks_go_on_while_lines_are_hot(awake):
    """Beats do not displace them."""
    conversation, call = Watched(), HeldCall()
    awake.add(conversation)
    call.on_look = lambda: setattr(call, "seen", None)  # hot for good: each beat looks new
    call.hold(b"1", awake)
    assert conversation.looked.acquire(timeout=LIMIT_S)
    assert conversation.looked.acquire(timeout=LIMIT_S)
    assert call in awake._hot


class Work:
    """What a followed thread is busy with."""

    def __init__(self, error: Exception | None = None) -> None:
        self.beats = threading.Semaphore(0)
        self.error = error

    def beat(self) -> None:
        self.beats.release()
        if self.error is not None:
            raise self.error


class Thread:
    """A thread that is followed."""

    def __init__(self, sweeper: Sweeper) -> None:
        self.busy: Work | None = None
        self.seen: Work | None = None
        self.sweeper = sweeper
        sweeper.follow(self)

    def begin(self, work: Work) -> None:
        self.busy = work
        self.sweeper.call()


def two_beats(sweeper: Sweeper) -> None:
    call = HeldCall()
    call.hold(b"1", sweeper)
    assert call.has_flushed.acquire(timeout=LIMIT_S)


def test_work_that_lasts_for_longer_than_a_beat_is_told(sweeper):
    """Whenever a thread begins something else; also where nothing else keeps the sweeper awake."""
    thread = Thread(sweeper)
    for _ in range(3):
        work = Work()
        thread.begin(work)
        assert work.beats.acquire(timeout=LIMIT_S)


def test_work_that_is_over_or_has_just_begun_is_not_told(awake):
    """What a beat sees for the first time still has until the next one."""
    thread, first, second = Thread(awake), Work(), Work()
    thread.begin(first)
    thread.busy = None
    two_beats(awake)
    thread.busy = thread.seen = None
    thread.begin(second)
    thread.busy = None
    two_beats(awake)
    assert not first.beats.acquire(blocking=False)
    assert not second.beats.acquire(blocking=False)


def test_a_thread_that_is_not_followed_any_more_is_left_alone(awake):
    """Nor is one that never was."""
    thread, work = Thread(awake), Work()
    awake.unfollow(thread)
    awake.unfollow(thread)
    thread.begin(work)
    two_beats(awake)
    two_beats(awake)
    assert not work.beats.acquire(blocking=False)


def test_work_that_cannot_be_looked_after_takes_nothing_from_the_others(awake, caplog):
    """It is logged."""
    broken, good = Thread(awake), Thread(awake)
    broken.begin(Work(ValueError("boom")))
    assert broken.busy is not None
    assert broken.busy.beats.acquire(timeout=LIMIT_S)
    work = Work()
    good.begin(work)
    assert work.beats.acquire(timeout=LIMIT_S)
    assert "a long call could not be checked" in caplog.text


def test_a_long_turn_at_the_gate_ends(awake):
    """Who comes to the gate wakes the sweeper, which ends a turn that lasts for longer than a beat."""
    owner, guest = Ticket(), Ticket()
    awake.gate.enter(owner)
    awake.gate.enter(guest)  # returns when the owner's turn is over
    awake.gate.leave(owner)
    assert owner.pace.slow_until > 0
    assert guest.pace.slow_until == 0


class _Bell(threading.Event):
    """Does something in the very moment in which somebody begins to wait."""

    def __init__(self, then: Callable[[], None]) -> None:
        super().__init__()
        self.then = then

    def wait(self, timeout: float | None = None) -> bool:
        self.then()
        return super().wait(timeout)


@pytest.mark.parametrize("moment", ["beat", "sleep"])
def test_who_comes_while_the_sweeper_falls_asleep_is_not_left_alone(awake, moment):
    """Its last beat has looked already, or it is about to sleep; who counts on the next beat is seen all the same."""
    thread, work, comes, beat = Thread(awake), Work(), threading.Event(), awake.gate.beat

    def come() -> None:
        if not comes.is_set():
            comes.set()
            thread.begin(work)

    def last_beat() -> bool:
        is_busy = beat()
        if awake._beats == 1:
            come()
        return is_busy

    if moment == "beat":
        awake.gate.beat = last_beat
    else:
        awake._wakeup = _Bell(come)
    call = HeldCall()
    call.hold(b"1", awake)
    assert call.has_flushed.acquire(timeout=LIMIT_S)
    assert comes.wait(LIMIT_S)
    assert work.beats.acquire(timeout=LIMIT_S)


def test_without_conversations_nothing_runs():
    """The thread starts with the first one, and ends with `close`."""
    sweeper, before = Sweeper(), threading.active_count()
    assert threading.active_count() == before
    sweeper.add(Watched(looks=1))
    (thread,) = [one for one in threading.enumerate() if one.name == "invoker-sweeper"]
    sweeper.close()
    assert not thread.is_alive()
    sweeper.close()


def test_closing_wakes_the_thread_at_once(awake):
    """Although it sleeps from look to look."""
    assert LOOK_S > 0.01
    thread = awake._thread
    awake.close()
    assert not thread.is_alive()


def test_a_thread_that_is_not_followed_any_more_keeps_no_work(awake):
    """Neither what the sweeper saw at its last beat, nor what it is telling when the thread is forgotten."""

    class Last(Work):
        """Ends with its first beat."""

        def beat(self) -> None:
            awake.unfollow(thread)
            super().beat()

    thread, work = Thread(awake), Last()
    thread.begin(work)
    assert work.beats.acquire(timeout=LIMIT_S)
    two_beats(awake)
    assert thread.seen is None
    other = Thread(awake)
    other.seen = work
    awake.unfollow(other)
    assert other.seen is None
