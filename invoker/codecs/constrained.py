"""Refuses decoded values that an annotation does not allow, whatever codec has decoded them."""

from __future__ import annotations

from typing import Any

from invoker.codecs.anyvalue import Known
from invoker.codecs.interface import Decode
from invoker.errors import DecodeError
from invoker.errors.wording import Place
from invoker.fields.constraints import Constraints
from invoker.message import Message


def constrained(decode: Decode, constraints: Constraints, where: Place) -> Decode:
    """A closure that decodes, then checks.

    Args:
        decode: Decodes the value.
        constraints: The constraints of the input.
        where: The place that begins the text of errors.
    """
    check = constraints.checker()
    if check is None:
        return decode

    def decode_and_check(message: Message[bytes]) -> Any:
        value = decode(message)
        if type(message.payload) is not Known:  # a known value was checked when it arrived
            for problem in check(value):
                raise DecodeError(f" {problem.text}", place=where)
        return value

    return decode_and_check
