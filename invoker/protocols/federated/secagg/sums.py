"""The running sums of masked vectors: a vector is added when it comes, and is not kept (F-119).

All vectors are masked, so even the first sum reveals nothing about a device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from invoker.protocols.federated.wire.packing import unpack

if TYPE_CHECKING:
    import numpy as np

    from invoker.protocols.federated.secagg.events import Compute

    Array: TypeAlias = np.ndarray[Any, Any]


class Sums:
    """Sums of vectors modulo their moduli.

    Args:
        vectors: The modulus and the length of each vector, by name.
        compute: Runs a job in a thread; there is one job at a time.
    """

    def __init__(self, vectors: Mapping[str, tuple[int, int]], compute: Compute) -> None:
        self._vectors = vectors
        self._compute = compute
        self._totals: dict[str, Array] = {}
        self._waiting: list[Mapping[str, bytes]] = []
        self._is_busy = False
        self._then: Callable[[dict[str, Array]], None] | None = None

    def add(self, packed: Mapping[str, bytes]) -> None:
        """Add the vectors of one device; their sizes were checked."""
        self._waiting.append(packed)
        self._go_on()

    def finish(self, then: Callable[[dict[str, Array]], None]) -> None:
        """When all vectors are added, call ``then`` with the sums by name: (length,) of uint64 below the modulus."""
        self._then = then
        self._go_on()

    def _go_on(self) -> None:
        if self._is_busy:
            return
        if self._waiting:
            self._is_busy = True
            # Vectors that come while this job runs are added by the next job.
            some, self._waiting = self._waiting, []
            self._compute(lambda: self._add(some), self._added)
        elif self._then is not None:
            then, self._then = self._then, None
            then(self._totals)

    def _added(self, _result: None) -> None:
        self._is_busy = False
        self._go_on()

    def _add(self, some: list[Mapping[str, bytes]]) -> None:
        import numpy as np

        while some:
            packed = some.pop()
            for name, (modulus, length) in self._vectors.items():
                values = unpack(packed[name], modulus, length)
                total = self._totals.setdefault(name, np.zeros(length, np.uint64))
                # both values are below 2^62, so their sum fits
                np.add(total, values, out=total)
                np.subtract(total, np.uint64(modulus), out=total, where=total >= modulus)
