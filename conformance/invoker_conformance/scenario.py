"""Scenarios and their registry: what is sent, what is expected, which requirements it judges.

A scenario is an async function that takes a `Probe` (of Evergreen a `Stage`, of GraphPipe an `Asker`, of the tool
bridge a `Host`, of federated compute a `Fleet`) and raises `Failure` when the target behaves otherwise, or
`NotProvided` when the target does not offer what is judged. Its docstring describes the expected behaviour; the report
prints it.
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
        met: The behaviour of the target.
        expected: The expected behaviour.
        sent: The messages to the target, as far as known where the failure was found.
        breaks: Ids of the requirements that this breaks; empty: those that the scenario judges.
    """

    def __init__(self, met: str, expected: str, sent: str = "", *, breaks: tuple[str, ...] = ()) -> None:
        super().__init__(f"met {met}; expected {expected}")
        self.breaks = breaks
        self.met = met
        self.expected = expected
        self.sent = sent


@contextmanager
def breaking(*ids: str) -> Iterator[None]:
    """A failure within this block breaks only these requirements, of all that the scenario judges."""
    try:
        yield
    except Failure as failure:
        failure.breaks = failure.breaks or ids
        raise


class NotProvided(Exception):
    """The target does not offer the function or the optional feature that is judged."""


Body: TypeAlias = Callable[[Any], Awaitable[None]]
"""Takes the `Probe` of its protocol."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One conversation with the target and what is expected of it.

    Attributes:
        name: Unique.
        protocol: One of `PROTOCOLS`.
        chapter: The chapter of the catalogue, the name of its module without ``scenarios_``.
        requirements: ``R-``, ``E-``, ``G-``, ``T-`` or ``F-`` ids that it judges.
        numbers: ``RT-``, ``ET-``, ``GT-``, ``TT-`` or ``FT-`` ids of the catalogue's scenarios that it carries out.
        functions: Named functions that the target must provide, the one under test first.
        over_http: Whether it uses HTTP; otherwise gRPC.
        expects: First line of the docstring.
        body: Runs it.
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
        """Whether ``wanted`` selects this scenario: by its name or one of its ids."""
        folded = wanted.strip().lower()
        return folded in {self.name, *(id_.lower() for id_ in (*self.requirements, *self.numbers))}


SCENARIOS: dict[str, Scenario] = {}
"""Every scenario by name, in the order of definition."""


def scenario(*ids: str, function: str | tuple[str, ...] = ()) -> Callable[[Body], Body]:
    """Register an async function as a scenario.

    Args:
        ids: ``R-``, ``E-``, ``G-``, ``T-`` or ``F-`` ids that it judges, and ``RT-``, ``ET-``, ``GT-``, ``TT-`` or
            ``FT-`` ids that it carries out.
        function: Named functions it needs; the first one is called when no other is named.
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
