"""Drivers for functions."""

from __future__ import annotations

import threading
from typing import Any

from invoker.author.prepare import prepare_function
from invoker.codecs import builtin
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.core.streams import Limits
from invoker.execution.driver import Driver, DriverSettings

drivers: list[Driver] = []
"""Those that the running test has made."""


def driver_of(*functions: Any, limits: Limits | None = None, **settings: Any) -> Driver:
    """A driver for functions."""
    catalog = Catalog([prepare_function(one).function for one in functions])
    engine = Engine(catalog, builtin(entry_points=False), limits=limits, new_lock=threading.Lock)
    drivers.append(Driver(engine, DriverSettings(**settings)))
    return drivers[-1]
