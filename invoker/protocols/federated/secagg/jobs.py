"""Runs the heavy work of one round in threads, as long as the round lasts."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from invoker.protocols.federated.secagg.events import Compute

log = logging.getLogger(__name__)


class Jobs:
    """Runs jobs by ``compute``, until the round is over.

    Args:
        compute: Runs the jobs; it is the owner's.
        broken: Called on the loop when a job has raised, which is a bug of the invoker.
    """

    def __init__(self, compute: Compute, broken: Callable[[], None]) -> None:
        self._compute = compute
        self._broken = broken
        self._are_stopped = False

    @property
    def are_stopped(self) -> bool:
        """Whether the round is over; running jobs check this, too."""
        return self._are_stopped

    def stop(self) -> None:
        """Start no more jobs, since the round is over, and drop the results of the running ones."""
        self._are_stopped = True

    def run(self, job: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Run a job, and call ``then`` on the loop with what it returns."""

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
