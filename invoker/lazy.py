"""`lazy`: names of a package whose modules are imported on first use (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def no_attribute(module: str, name: str) -> AttributeError:
    """The error that Python itself raises for a name that a module does not have."""
    return AttributeError(f"module {module!r} has no attribute {name!r}")


def lazy(package: str, names: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make the functions that a package assigns to ``__getattr__`` and ``__dir__``.

    Args:
        package: Its own name.
        names: Where each name is defined, by the name.
    """

    def get(name: str) -> Any:
        if name not in names:
            raise no_attribute(package, name)
        found = getattr(import_module(names[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *names})

    return get, listed
