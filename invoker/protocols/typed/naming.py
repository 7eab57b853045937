"""Names of protobuf made from names of Python; the rule is in docs/reference/typed.md.

A package is the module's dotted name, a service its last part in capitals with ``Service`` behind it, a method the
function's name in capitals. Where a name is taken, the next one gets a number.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_STRANGE = re.compile(r"[^0-9A-Za-z_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def camel(text: str) -> str:
    """``running_mean`` as ``RunningMean``; capitals inside a word stay."""
    words = [one for one in _STRANGE.sub("_", text).split("_") if one]
    found = "".join(one[0].upper() + one[1:] for one in words)
    return found if found[:1].isalpha() else f"X{found}"


def snake(text: str) -> str:
    """A name in lower case with underscores: ``RunningMean`` as ``running_mean``."""
    found = "_".join(one for one in _HUMP.sub("_", _STRANGE.sub("_", text)).lower().split("_") if one)
    return found if found[:1].isalpha() else f"x{found}"


def upper(text: str) -> str:
    """``RunningMean`` as ``RUNNING_MEAN``, for values of enums."""
    return snake(text).upper()


def field_word(text: str) -> str:
    """The name of the field for a parameter; it is the parameter's own where protobuf allows that."""
    found = _STRANGE.sub("_", text).strip("_")
    return found if found[:1].isalpha() else f"x{found}"


def json_name(field: str) -> str:
    """The name of a field in JSON, as protoc makes it."""
    head, *rest = field.split("_")
    return head + "".join(one[:1].upper() + one[1:] for one in rest)


def package_of(module: str) -> str:
    """The package of a module; ``functions`` for one without a name."""
    return ".".join(snake(one) for one in module.split(".") if one) or "functions"


def service_of(package: str) -> str:
    """The name of the service of a package."""
    return f"{camel(package.rpartition('.')[2])}Service"


class Names:
    """Gives names in one scope, each only once.

    Args:
        key: Names with the same key count as equal.
    """

    def __init__(self, *taken: str, key: Callable[[str], str] = str) -> None:
        self._key = key
        self._taken = {key(one) for one in taken}

    def give(self, wanted: str, behind: str = "") -> str:
        """Give the name, or the first free one that is made by appending a number.

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
