"""A coordinator with devices, a service and a clock in memory: calls in, notices out."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any

from invoker.errors import InvocationError
from invoker.message import EMPTY, Headers
from invoker.protocols.federated.aggregating import Abandon, AggregatingSession, Begin, Enough, Report, Word
from invoker.protocols.federated.backing import Commit, EligibilitySetup, PopulationSetup, TaskSetup
from invoker.protocols.federated.config import PopulationConfig, TaskConfig
from invoker.protocols.federated.coordinator import CoordinatorLimits, RoundCoordinator
from invoker.protocols.federated.messages import (
    Accepted,
    Blob,
    Capabilities,
    Checkin,
    Notice,
    Over,
    Rejected,
    ReportIn,
    ReportTaken,
    Resume,
)

CAN = Capabilities(chunks=True, secagg=True)


def task(name: str = "train", **numbers: Any) -> TaskSetup:
    """A task whose rounds take two clients, unless it is said otherwise."""
    own = {key: numbers.pop(key) for key in ("checker", "takes_model", "committed") if key in numbers}
    given = {"min_clients": 2, "goal_clients": 2, "max_clients": 2, "over_selection": 1.0} | numbers
    config = TaskConfig(name=name, aggregate="m:" + name, plan="m:train", initial="m:initial", **given)
    return TaskSetup(config, Blob(b"plan " + name.encode()), Blob(b"model 0"), **own)


def population(name: str = "iris", *tasks: TaskSetup, **more: Any) -> PopulationSetup:
    """A population with some tasks, or with one."""
    tasks = tasks or (task(),)
    own = {key: more.pop(key) for key in ("tokens", "eligibility", "attest", "api_key") if key in more}
    config = PopulationConfig(name=name, tasks=tuple(one.config for one in tasks), **{"seed": 1, **more})
    if own.get("eligibility") is True:
        own["eligibility"] = EligibilitySetup(Blob(b"which"), Blob(b"start"), b"spec")
    return PopulationSetup(config, tasks, **own)


class Mail:
    """A mailbox that is read by looking at it."""

    def __init__(self) -> None:
        self.notices: list[Notice] = []

    def put(self, notice: Notice) -> None:
        self.notices.append(notice)

    def next(self) -> Any:
        raise AssertionError("nobody waits here")


class Client:
    """A device, its conversation, and what it was told."""

    def __init__(self, house: House, metadata: Headers = EMPTY) -> None:
        self.house = house
        self.ever = ""  # for tests that write down what it has done
        self.may = False
        self.status = 0
        self.mailbox = Mail()
        house.coordinator.enter(self, metadata)

    @property
    def notices(self) -> list[Notice]:
        return self.mailbox.notices

    @property
    def ending(self) -> Notice | None:
        """The first notice that ends what it came for; there is at most one, and OK may follow an answer."""
        ends = [one for one in self.notices if isinstance(one, (Rejected, ReportTaken, Over))]
        assert len(ends) < 2 or (len(ends) == 2 and ends[1] == Over(None) and not isinstance(ends[0], Over)), ends
        return ends[0] if ends else None

    @property
    def offer(self) -> Any:
        """What it was accepted with; None: it was not."""
        return next((one.offer for one in self.notices if isinstance(one, Accepted)), None)

    @property
    def is_waiting(self) -> bool:
        return not self.notices

    @property
    def was_resumed(self) -> bool:
        return Resume() in self.notices

    @property
    def error(self) -> InvocationError | None:
        """The status that its conversation ended with."""
        assert isinstance(self.ending, Over)
        return self.ending.error

    def check_in(self, name: str = "iris", *, can: Capabilities = CAN, **more: Any) -> Client:
        self.house.coordinator.check_in(self, Checkin(name, can=can, **more))
        return self

    def report(self, update: bytes = b"update", **more: Any) -> Client:
        self.house.coordinator.report(self, ReportIn(update, **more))
        return self

    def leave(self) -> None:
        self.house.coordinator.leave(self)


class Aggregator:
    """The function of one round: takes what it is fed when it is asked to."""

    def __init__(self, session: AggregatingSession) -> None:
        self.session = session
        self.words: list[Word] = []
        self.taken = 0
        self.is_over = False

    @property
    def reports(self) -> list[Report]:
        return [one for one in self.words if isinstance(one, Report)]

    @property
    def updates(self) -> list[bytes]:
        return [one.message.payload for one in self.reports[: self.taken]]

    @property
    def has_enough(self) -> bool:
        return any(isinstance(one, Enough) for one in self.words)

    @property
    def is_abandoned(self) -> bool:
        return any(isinstance(one, Abandon) for one in self.words)

    def take(self, many: int = 1_000_000) -> Aggregator:
        """Take reports that were fed."""
        for one in self.reports[self.taken : self.taken + many]:
            self.taken += 1
            self.session._hears.taken(one.ordinal)
        return self

    def finish(self, checkpoint: bytes | None = b"model 1", error: InvocationError | None = None) -> None:
        self.session._hears.finished(checkpoint if error is None else None, error)


def caught(job: Callable[[], Any]) -> Any:
    """What a job returns or raises, as the service tells it."""
    try:
        return job()
    except Exception as error:
        return error


class House:
    """A coordinator and its service.

    Attributes:
        time: What the clock says.
        rounds: Functions of rounds, in the order of their beginnings.
        commits: What was asked to be stored, with what answers it.
        woken: When the coordinator wanted to be woken.
    """

    def __init__(self, *setups: PopulationSetup, limits: CoordinatorLimits | None = None) -> None:
        self.time = 100.0
        self.rounds: list[Aggregator] = []
        self.commits: list[tuple[Commit, Callable[[bool], None]]] = []
        self.woken: list[float] = []
        self.coordinator = RoundCoordinator(self, lambda: self.time, limits)
        for one in setups:
            self.coordinator.open(one)

    # The service.

    def aggregate(self, session: AggregatingSession) -> Callable[[Word], None]:
        self.rounds.append(Aggregator(session))
        assert not self.rounds[-1].words
        return self.rounds[-1].words.append

    def commit(self, commit: Commit, done: Callable[[bool], None]) -> None:
        self.commits.append((commit, done))

    def new_id(self) -> str:
        return secrets.token_urlsafe(18)

    def publish(self, checkpoint: bytes) -> Blob:
        return Blob(checkpoint)

    def compute(self, job: Callable[[], Any], then: Callable[[Any], None]) -> None:
        then(caught(job))

    def wake(self, at: float) -> None:
        self.woken.append(at)

    # The test.

    def client(self, **metadata: str) -> Client:
        """One that has entered."""
        return Client(self, Headers({key.replace("_", "-"): value for key, value in metadata.items()}))

    def clients(self, many: int, name: str = "iris", **more: Any) -> list[Client]:
        """Some that have checked in; the coordinator has decided what can be decided."""
        made = [self.client().check_in(name, **more) for _ in range(many)]
        self.passes(0)
        return made

    def passes(self, seconds: float) -> None:
        """Time passes, and the coordinator is called at each time that it asked for."""
        until = self.time + seconds
        while (at := self.coordinator.next_tick()) is not None and at <= until:
            self.time = max(self.time, at)
            self.coordinator.tick()
        self.time = until

    def stored(self, *, ok: bool = True) -> Commit:
        """Answer the last commit."""
        commit, done = self.commits[-1]
        done(ok)
        return commit

    def round(self) -> Aggregator:
        """The function of the last round, which has begun."""
        assert isinstance(self.rounds[-1].words[0], Begin)
        return self.rounds[-1]

    def phases(self) -> Sequence[str]:
        return [one.phase for one in self.coordinator.status()]
