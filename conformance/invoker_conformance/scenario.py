"""`Scenario` and the registry of scenarios.

A scenario is an async function that takes a `Probe` (for Evergreen a `Stage`, for GraphPipe an `Asker`, for the tool
bridge a `Host`, for federated compute a `Fleet`). It raises `Failure` if the target does not behave as expected, or
`NotProvided` if the target lacks the function or feature. Its docstring describes the expected behaviour, and is
printed in reports.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

PROTOCOLS = ("riff", "evergreen", "graphpipe", "toolbridge", "federated")


class Failure(Exception):
    """The target broke a requirement.

    Attributes:
        met: The actual behaviour of the target.
        expected: The expected behaviour.
        sent: The text of the messages to the target, if it is known.
        breaks: The ids of the broken requirements; empty: those of the scenario.
    """

    def __init__(self, met: str, expected: str, sent: str = "", *, breaks: tuple[str, ...] = ()) -> None:
        super().__init__(f"met {met}; expected {expected}")
        self.breaks = breaks
        self.met = met
        self.expected = expected
        self.sent = sent


@contextmanager
def breaking(*ids: str) -> Iterator[None]:
    """A context: a failure within it breaks only these requirements of the scenario."""
    try:
        yield
    except Failure as failure:
        failure.breaks = failure.breaks or ids
        raise


class NotProvided(Exception):
    """The target does not offer the function or the optional feature under test."""


Body: TypeAlias = Callable[[Any], Awaitable[None]]
"""A function that takes the `Probe` of its protocol."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A test of the target's behaviour.

    Attributes:
        name: The unique name.
        protocol: One of `PROTOCOLS`.
        chapter: The chapter of the catalogue: the name of the module without ``scenarios_``.
        requirements: The ids of the requirements that it tests (``R-``, ``E-``, ``G-``, ``T-`` or ``F-``).
        numbers: The ids of the catalogue's scenarios that it implements (``RT-``, ``ET-``, ``GT-``, ``TT-`` or
            ``FT-``).
        functions: The functions that the target must serve; the first one is under test.
        over_http: Whether it uses HTTP; otherwise it uses gRPC.
        expects: The first line of the docstring.
        body: The function that runs the scenario.
    """

    name: str
    protocol: str
    chapter: str
    requirements: tuple[str, ...]
    numbers: tuple[str, ...]
    functions: tuple[str, ...]
    over_http: bool
    expects: str
    body: Body

    def answers_to(self, wanted: str) -> bool:
        """Whether ``wanted`` is the name or an id of this scenario."""
        folded = wanted.strip().lower()
        return folded in {self.name, *(id_.lower() for id_ in (*self.requirements, *self.numbers))}


SCENARIOS: dict[str, Scenario] = {}
"""Every scenario by name, in the order of definition."""


def scenario(*ids: str, function: str | tuple[str, ...] = ()) -> Callable[[Body], Body]:
    """Register an async function as a scenario.

    Args:
        ids: The ids of the requirements that it tests, and of the catalogue's scenarios that it implements.
        function: The functions that it needs; the first one is called unless another is named.
    """

    def register(body: Body) -> Body:
        name = body.__name__
        if name in SCENARIOS:
            raise ValueError(f"two scenarios are named {name}")
        package, _, chapter = body.__module__.rpartition("scenarios_")
        SCENARIOS[name] = Scenario(
            name=name,
            protocol=next((each for each in PROTOCOLS if f".{each}." in package), PROTOCOLS[0]),
            chapter=chapter.partition("_")[0],
            requirements=tuple(id_ for id_ in ids if id_.startswith(("R-", "E-", "G-", "T-", "F-"))),
            numbers=tuple(id_ for id_ in ids if id_.startswith(("RT-", "ET-", "GT-", "TT-", "FT-"))),
            functions=(function,) if isinstance(function, str) else function,
            over_http=chapter.startswith("http"),
            expects=(body.__doc__ or "").strip().splitlines()[0],
            body=body,
        )
        return body

    return register
