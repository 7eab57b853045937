"""Makes protobuf names from Python names; docs/reference/typed.md has the rule.

A package has the module's dotted name. A service has the last part of that name in CamelCase, followed by ``Service``.
A method has the function's name in CamelCase. If a name is taken, a number is appended.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_STRANGE = re.compile(r"[^0-9A-Za-z_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def camel(text: str) -> str:
    """A name in CamelCase: ``RunningMean`` for ``running_mean``; capitals inside a word stay."""
    words = [one for one in _STRANGE.sub("_", text).split("_") if one]
    found = "".join(one[0].upper() + one[1:] for one in words)
    return found if found[:1].isalpha() else f"X{found}"


def snake(text: str) -> str:
    """A name in lower case with underscores: ``running_mean`` for ``RunningMean``."""
    found = "_".join(one for one in _HUMP.sub("_", _STRANGE.sub("_", text)).lower().split("_") if one)
    return found if found[:1].isalpha() else f"x{found}"


def upper(text: str) -> str:
    """A name for the value of an enum: ``RUNNING_MEAN`` for ``RunningMean``."""
    return snake(text).upper()


def field_word(text: str) -> str:
    """The name of the field for a parameter: the parameter's name, if protobuf allows it."""
    found = _STRANGE.sub("_", text).strip("_")
    return found if found[:1].isalpha() else f"x{found}"


def json_name(field: str) -> str:
    """The name of a field in JSON, made by the rule of protoc."""
    head, *rest = field.split("_")
    return head + "".join(one[:1].upper() + one[1:] for one in rest)


def package_of(module: str) -> str:
    """The package of a module; ``functions`` for a module without a name."""
    return ".".join(snake(one) for one in module.split(".") if one) or "functions"


def service_of(package: str) -> str:
    """The name of the service of a package."""
    return f"{camel(package.rpartition('.')[2])}Service"


class Names:
    """Gives out names that are unique in one scope.

    Args:
        key: Names with the same key count as equal.
    """

    def __init__(self, *taken: str, key: Callable[[str], str] = str) -> None:
        self._key = key
        self._taken = {key(one) for one in taken}

    def give(self, wanted: str, behind: str = "") -> str:
        """Return the name, with the first free number appended if it is taken.

        Args:
            wanted: The name without its fixed ending.
            behind: The fixed ending.
        """
        name, number = f"{wanted}{behind}", 1
        while self._key(name) in self._taken:
            number += 1
            name = f"{wanted}{number}{behind}"
        self._taken.add(self._key(name))
        return name
