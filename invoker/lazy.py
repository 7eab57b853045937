"""`lazy`: makes names of a package whose modules are imported on first use (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def no_attribute(module: str, name: str) -> AttributeError:
    """The error that Python itself raises for an unknown name of a module."""
    return AttributeError(f"module {module!r} has no attribute {name!r}")


def lazy(
    package: str, names: Mapping[str, str], base: str = ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make the functions that a package assigns to ``__getattr__`` and ``__dir__``.

    Args:
        package: The name of the package.
        names: A dict from each module to the names that it defines, separated by blanks.
        base: The package of all these modules; empty: ``names`` has their full names.
    """
    where = {name: f"{base}.{module}".lstrip(".") for module, some in names.items() for name in some.split()}

    def get(name: str) -> Any:
        if name not in where:
            raise no_attribute(package, name)
        found = getattr(import_module(where[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *where})

    return get, listed
