"""The members of classes with fields, with defaults as JSON has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from invoker.codecs import members
from invoker.codecs.members import Members, Property
from invoker.codecs.schema.plain import NOTHING, plain_value

__all__ = ["Members", "Property", "members_of"]


def members_of(cls: Any, arguments: Sequence[Any] = ()) -> Members | None:
    """Read a class; None if its values have no fields. Defaults that JSON does not have are left out.

    Raises:
        NameError: An annotation cannot be resolved.
    """
    found = members.members_of(cls, arguments)
    if found is None:
        return None
    return found._replace(
        properties=[
            one if one.default is NOTHING else one._replace(default=plain_value(one.default))
            for one in found.properties
        ]
    )
