"""Functions without annotations, in a module that does not import numpy."""

from __future__ import annotations

import sys

from invoker import function
from invoker.protocols import graphpipe


@function
def doubled(x):  # type: ignore[no-untyped-def]
    return x * 2


@function
def both(x):  # type: ignore[no-untyped-def]
    return x, x[:1] * 2


@function
def lone(x):  # type: ignore[no-untyped-def]
    return (x,)


@function
def none(x):  # type: ignore[no-untyped-def]
    return ()


@function(outputs=("y",))
def named(x):  # type: ignore[no-untyped-def]
    return x, x


@function(outputs=("low", "high"))
def named_both(x):  # type: ignore[no-untyped-def]
    return x, x * 2


@function(options=[graphpipe.Rows()])
def by_row(x):  # type: ignore[no-untyped-def]
    return x, x.sum()


@function(batch_max=8, batch_wait_ms=1)
def batched(x):  # type: ignore[no-untyped-def]
    return x, -x


@function(options=[graphpipe.Rows()])
def uneven(x):  # type: ignore[no-untyped-def]
    return (x,) * int(x)


@function
def has_numpy(x):  # type: ignore[no-untyped-def]
    return "numpy" in sys.modules
