"""`Checkpoint` and `Update`: named arrays, the arguments and results of functions for federated compute.

They import numpy only when an array is made, so a module that only uses them in annotations is not slowed down.
`invoker.codecs.checkpoint` encodes them.
"""

from __future__ import annotations

import math
from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

CHECKPOINT: Final = "application/vnd.fcp.checkpoint"
"""The media type of checkpoints and updates (F-080)."""

NUM_CLIENTS: Final = "num_clients"
"""The header with the number of devices in a sum of secure aggregation (F-130)."""

_KINDS: Final = "biufc"
_RESERVED: Final = "__"
_LONGEST_NAME: Final = 200


# Not a subclass of Mapping: codecs would treat it as a dict and drop the weight of an update.
class Checkpoint:
    """Named arrays of numbers, such as the weights of a model; it is read like a dict and cannot be changed.

    Args:
        arrays: A dict from names to arrays, or to values that numpy can convert to arrays. Arrays are not copied.

    Raises:
        ValueError: A name is empty, begins with ``__`` or is longer than 200 characters; or an array has elements that
            are not numbers.
        ImportError: numpy is not installed.
    """

    __slots__ = ("_arrays",)

    __hash__ = None  # type: ignore[assignment]  # it is compared by its arrays, which have no hash

    def __init__(self, arrays: Mapping[str, ArrayLike] | Checkpoint = {}) -> None:  # noqa: B006 - it is only read
        self._arrays: dict[str, NDArray[Any]] = {name: _array(name, arrays[name]) for name in arrays}

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

    def __eq__(self, other: object) -> bool:
        """Whether type, names, shapes, dtypes and elements are equal, whatever the order of the names."""
        if not isinstance(other, Checkpoint) or type(self) is not type(other) or self.keys() != other.keys():
            return False
        return all(_equal(array, other[name]) for name, array in self.items())

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}: {one.dtype}{list(one.shape)}" for name, one in self.items())
        return f"{type(self).__name__}({inside})"

    def get(self, name: str, default: Any = None) -> Any:
        """The array of this name, or the default."""
        return self._arrays.get(name, default)

    def keys(self) -> KeysView[str]:
        """The names, in their order."""
        return self._arrays.keys()

    def values(self) -> ValuesView[NDArray[Any]]:
        """The arrays, in the order of their names."""
        return self._arrays.values()

    def items(self) -> ItemsView[str, NDArray[Any]]:
        """Names and arrays."""
        return self._arrays.items()


class Update(Checkpoint):
    """The report of one device: named arrays, and their weight in a mean.

    Args:
        arrays: As for `Checkpoint`.
        examples: How many examples the device has learned from. In a sum of secure aggregation, how many devices are in
            it.

    Attributes:
        examples: The number of examples, or of devices.

    Raises:
        ValueError: As for `Checkpoint`; or ``examples`` is negative, infinite or not a number.
    """

    __slots__ = ("examples",)

    __hash__ = None

    def __init__(
        self,
        arrays: Mapping[str, ArrayLike] | Checkpoint = {},  # noqa: B006 - it is only read
        *,
        examples: float = 1.0,
    ) -> None:
        super().__init__(arrays)
        self.examples = float(examples)
        if not (math.isfinite(self.examples) and self.examples >= 0):
            raise ValueError(f"examples={examples!r} must be a finite number that is not negative")

    def __eq__(self, other: object) -> bool:
        """Whether the arrays and the weights are equal."""
        return super().__eq__(other) and isinstance(other, Update) and self.examples == other.examples

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}{', ' if self else ''}examples={self.examples:g})"


def _array(name: Any, value: Any) -> NDArray[Any]:
    import numpy as np

    if not isinstance(name, str) or not name or name.startswith(_RESERVED) or len(name) > _LONGEST_NAME:
        raise ValueError(
            f"{str(name)[:80]!r} cannot name an array; a name is text of 1 to {_LONGEST_NAME} characters that does not "
            f"begin with '{_RESERVED}'"
        )
    array = np.asarray(value)
    if array.dtype.kind not in _KINDS:
        raise ValueError(f"array '{name}' has elements of dtype {array.dtype}; a checkpoint takes numbers only")
    return array


def _equal(one: NDArray[Any], other: NDArray[Any]) -> bool:
    import numpy as np

    return one.dtype == other.dtype and np.array_equal(one, other)
