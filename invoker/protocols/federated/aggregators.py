"""Built-in aggregation functions of federated compute, and how updates are checked before these see them.

A round gives its function the updates of devices one after the other, and the model that they started from. `mean` and
`sum` keep one running total, so they take the memory of a few models however many devices report. They are served like
any other function: ``aggregate = "invoker.aggregators:mean"``.

An update that does not fit would fail the round for all. So `checker` checks an update before it is fed, and only the
device that sent a wrong one is refused (F-086).
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
"""The largest element times its weight: sums of any number of updates stay finite."""

_LARGEST_INTEGER: Final = 2**43
"""The largest element of one update: sums of a million of them fit 64 bits."""


def mean(updates: Iterator[Update], model: Checkpoint) -> Checkpoint:
    """The mean of the updates, each weighted by its examples; if all weights are 0, the result is the model (F-085).

    Args:
        updates: The updates, each with the names and shapes of the model.
        model: The checkpoint that the round started from; the mean has its dtypes.

    Raises:
        ValueError: An update does not fit.
    """
    import numpy as np

    totals = {name: np.zeros(array.shape, np.float64) for name, array in model.items()}
    # otherwise each product would allocate new memory
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
    """The sum of the updates, element by element; the model only determines which arrays there are (F-085).

    Args:
        updates: The updates, each with the names and sizes of the model or, if the model is empty, those of the first
            update. Flat vectors, such as sums of secure aggregation, get the shape of the model's array.
        model: The checkpoint that the round started from.

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
    """A check of a round's updates before the function sees them; None: only the function checks them.

    Updates for the functions of this module are compared with the model, too. Updates for other functions only have to
    fit the annotation of their function.

    Args:
        entrypoint: The entrypoint of the aggregation function.
        wanted: The annotation of its first input, if that is a checkpoint or an update.
        model: The checkpoint that the round starts from.

    Returns:
        Raises ValueError or DecodeError for the payload of an update that does not fit, with a text for its sender.

    Raises:
        DecodeError: The model is no checkpoint.
    """
    if entrypoint not in (_MEAN, _SUM):
        return partial(_check_read, wanted) if wanted is not None else None
    like = read_checkpoint(model, Checkpoint, most_bytes=max(MOST_INFLATED, 8 * len(model)))
    # an update has the elements of the model, of at most 16 bytes, and heads of its arrays: it never inflates beyond
    # that
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
    """Refuse elements so large that one device would spoil the sum of all devices."""
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
    """The sum of two arrays of 64 bits; for different kinds it has the kind that holds both."""
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
    """Convert an array to a dtype; means of integers are rounded, not cut off."""
    import numpy as np

    return (np.rint(array) if dtype.kind in "iub" else array).astype(dtype)
