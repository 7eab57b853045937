"""Runs the long jobs of one round in threads, until the round ends."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from invoker.protocols.federated.secagg.events import Compute

log = logging.getLogger(__name__)


class Jobs:
    """Runs jobs by ``compute``, until the round has ended.

    Args:
        compute: Runs a job in a thread.
        broken: Called on the event loop when a job has raised, which is a bug of the invoker.
    """

    def __init__(self, compute: Compute, broken: Callable[[], None]) -> None:
        self._compute = compute
        self._broken = broken
        self._are_stopped = False

    @property
    def are_stopped(self) -> bool:
        """Whether the round has ended; running jobs check this, too."""
        return self._are_stopped

    def stop(self) -> None:
        """Start no more jobs, and drop the results of running ones, since the round has ended."""
        self._are_stopped = True

    def run(self, job: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Run a job, and call ``then`` with its result on the event loop."""

        def guarded() -> tuple[Any] | None:
            if self._are_stopped:
                return None
            try:
                return (job(),)
            except Exception:
                log.exception("secure aggregation has a bug, so this round fails")
                return None

        def after(result: tuple[Any] | None) -> None:
            if self._are_stopped:
                return
            if result is None:
                self._broken()
            else:
                then(result[0])

        self._compute(guarded, after)
