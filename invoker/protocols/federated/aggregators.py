"""Built-in aggregation functions of federated compute, and the check of updates before they are aggregated.

A round feeds its function the updates of devices one after the other, and the model from which they started. `mean` and
`sum` keep one running total, so they need the memory of a few models for any number of devices. They are named like any
other function: ``aggregate = "invoker.aggregators:mean"``.

An update that does not fit would fail the round for all devices. So `checker` makes a check that runs before an update
is fed, and only the device that sent a wrong update is refused (F-086).
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from invoker.codecs.checkpoint import MOST_INFLATED, read_checkpoint
from invoker.tensors.checkpoint import Checkpoint, Update

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MEAN: Final = "invoker.aggregators:mean"
_SUM: Final = "invoker.aggregators:sum"

_HEAD_BYTES: Final = 4096

_LARGEST: Final = 1e300
"""The limit for an element times its weight: sums of any number of updates stay finite."""

_LARGEST_INTEGER: Final = 2**43
"""The limit for an integer element: sums of a million updates fit into 64 bits."""


def mean(updates: Iterator[Update], model: Checkpoint) -> Checkpoint:
    """The mean of the updates, each weighted by its number of examples; if all weights are 0, the model (F-085).

    Args:
        updates: The updates, each with the names and shapes of the model.
        model: The checkpoint from which the round started; the mean has its dtypes.

    Raises:
        ValueError: An update does not fit.
    """
    import numpy as np

    totals = {name: np.zeros(array.shape, np.float64) for name, array in model.items()}
    # a buffer for products, each of which would otherwise allocate memory
    room = np.empty(max((one.size for one in totals.values()), default=0))
    weight = 0.0
    for update in updates:
        _check_mean(update, model)
        weight += update.examples
        for name, total in totals.items():
            product = room[: total.size].reshape(total.shape)
            np.add(total, np.multiply(update[name], update.examples, out=product), out=total)
    if not weight:
        return model
    return Checkpoint({name: _as(total / weight, model[name].dtype) for name, total in totals.items()})


def sum(updates: Iterator[Update], model: Checkpoint) -> Checkpoint:
    """The sum of the updates, element by element; the model only determines the names and shapes of the arrays (F-085).

    Args:
        updates: The updates, each with the names and sizes of the model; if the model is empty, with those of the first
            update. A flat vector, such as a sum of secure aggregation, gets the shape of the model's array.
        model: The checkpoint from which the round started.

    Raises:
        ValueError: An update does not fit; or a sum of integers needs more than 64 bits.
    """
    import numpy as np

    like, totals = model, dict[str, Any]()
    for update in updates:
        like = like or update
        _check_sum(update, like)
        for name, array in update.items():
            wide = {"f": np.float64, "c": np.complex128, "i": np.int64}.get(array.dtype.kind, np.uint64)
            one: NDArray[Any] = array.astype(wide, copy=name not in totals).reshape(like[name].shape)
            totals[name] = _added(name, totals[name], one) if name in totals else one
    return Checkpoint(totals)


def checker(entrypoint: str, wanted: type[Checkpoint] | None, model: bytes) -> Callable[[bytes], None] | None:
    """Make a check for the updates of a round, to run before they are fed; None: only the function checks them.

    Updates for `mean` and `sum` are also compared with the model. Updates for other functions only have to fit the
    annotation of the function.

    Args:
        entrypoint: The entrypoint of the aggregation function.
        wanted: The annotation of the function's first input, if that is a checkpoint or an update.
        model: The checkpoint from which the round starts.

    Returns:
        A function of the payload, which raises ValueError or DecodeError for an update that does not fit; the text is
            for its sender.

    Raises:
        DecodeError: The model is not a valid checkpoint.
    """
    if entrypoint not in (_MEAN, _SUM):
        return partial(_check_read, wanted) if wanted is not None else None
    like = read_checkpoint(model, Checkpoint, most_bytes=max(MOST_INFLATED, 8 * len(model)))
    # an update has the elements of the model, each of at most 16 bytes, and headers of arrays: a larger inflated size
    # is refused
    elements = builtins.sum(one.size for one in like.values())
    most_bytes = 16 * elements + _HEAD_BYTES * (len(like) + 1) if like else MOST_INFLATED

    def check(payload: bytes) -> None:
        nonlocal like
        update = read_checkpoint(payload, Update, most_bytes=most_bytes)
        if entrypoint == _MEAN:
            _check_mean(update, like)
            return
        like = like or update
        _check_sum(update, like)
        _check_size(update)

    return check


def _check_read(wanted: type[Checkpoint], payload: bytes) -> None:
    read_checkpoint(payload, wanted)


def _check_mean(update: Update, model: Checkpoint) -> None:
    _check_names(update, model)
    for name, array in update.items():
        if array.shape != model[name].shape:
            raise ValueError(f"the shape of '{name}' is {list(array.shape)}, and the model's {list(model[name].shape)}")
        if array.dtype.kind == "c":
            raise ValueError(f"'{name}' is {array.dtype}; the mean needs real numbers")
        ends = (float(array.min()), float(array.max())) if array.size else (0.0, 0.0)
        # min() and max() of an array with a NaN are NaN, and no comparison with NaN is true
        if not all(-_LARGEST <= one * max(update.examples, 1.0) <= _LARGEST for one in ends):
            raise ValueError(f"'{name}' has elements that are too large, or not numbers")


def _check_sum(update: Update, model: Checkpoint) -> None:
    _check_names(update, model)
    for name, array in update.items():
        shape = model[name].shape
        if array.shape != shape and (array.ndim != 1 or array.size != model[name].size):
            raise ValueError(f"the shape of '{name}' is {list(array.shape)}, and the model's {list(shape)}")


def _check_size(update: Update) -> None:
    """Refuse elements so large that one device could spoil the sum of all devices."""
    import numpy as np

    for name, array in update.items():
        largest = _LARGEST if array.dtype.kind in "fc" else _LARGEST_INTEGER
        if not np.all(
            (array <= largest) & (array >= -largest) if array.dtype.kind != "c" else np.abs(array) <= largest
        ):
            raise ValueError(f"'{name}' has elements that are too large, or not numbers")


def _check_names(update: Update, model: Checkpoint) -> None:
    if update.keys() != model.keys():
        raise ValueError(f"it has the arrays {_listed(update)}; the model has {_listed(model)}")


def _listed(checkpoint: Checkpoint) -> str:
    names = sorted(checkpoint)
    return ", ".join(repr(one[:40]) for one in names[:10]) + (", ..." if len(names) > 10 else "") or "none"


def _added(name: str, total: NDArray[Any], array: NDArray[Any]) -> NDArray[Any]:
    """The sum of two arrays of 64 bits; if their kinds differ, the sum has a kind that can hold both."""
    import numpy as np

    if total.dtype == array.dtype and total.dtype.kind in "fc":
        np.add(total, array, out=total)
        return total
    found = np.asarray(total + array)
    if total.dtype == array.dtype and found.dtype.kind in "iu":
        has_wrapped = (found < total) != (array < 0)
        if has_wrapped.any():
            raise ValueError(f"the sum of '{name}' needs more than 64 bits")
    return found


def _as(array: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Convert an array to a dtype; for an integer dtype, the elements are rounded."""
    import numpy as np

    return (np.rint(array) if dtype.kind in "iub" else array).astype(dtype)
