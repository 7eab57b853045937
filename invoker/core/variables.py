"""Variables of a host session: the questions about them that the tool bridge and `Context.variables` ask the store.

Theory. A host session is a space of the store; each variable is an item of it. The item's value is a serialised
``google.protobuf.Any``, just as it was written; `About`, the rest of the data of a variable, is stored with the value.
So a change that the store reports is the update of a variable, without conversion, and one question reads or writes a
variable.

Each function here is a *talk* with the store: a generator that yields a question, is sent the answer, and returns the
result. The sessions of the bridge and the functions' contexts carry the questions in their own ways. The name of the
space may be `OWN` if the code that receives the question knows the space.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from invoker.core.store import PRESENT, Get, Item, Put, Question, Reason, Refused, Scan
from invoker.errors import Status, VariableError

T = TypeVar("T")

Talk: TypeAlias = Generator[Question, Any, T]

OWN: Final = ""
"""The space of the host session in which a function runs."""

PREFIX: Final = "var/"
"""The prefix of the names of items."""

_NAME_BYTES: Final = 256
_PAGE: Final = 200
"""How many variables are read by one question; each comes with its value."""

_GONE: Final = {Reason.EXPIRED: "expired", Reason.DROPPED: "cleaned"}


class About(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """The maker and the tags of a variable.

    Attributes:
        by: Its maker: elixir or python.
        tags: Keys and values that the writer has chosen.
    """

    by: str = "elixir"
    tags: dict[str, str] = {}


class Variable(msgspec.Struct, frozen=True):
    """A variable; its value is a serialised ``google.protobuf.Any``."""

    name: str
    value: bytes
    about: About
    created_ns: int
    updated_ns: int


def read(space: str, name: str) -> Talk[Variable | None]:
    """Read a variable; None if there is none (T-115)."""
    check_name(name)
    item = _answered((yield Get(space, PREFIX + name)))
    return None if item is None else _found(item)


def write(
    space: str, name: str, value: bytes, *, by: str, tags: Mapping[str, str] | None = None, creates: bool = True
) -> Talk[Variable]:
    """Write a variable.

    Args:
        space: The space of the host session.
        name: The name of the variable.
        value: A serialised ``google.protobuf.Any``.
        by: The maker of a new variable; an existing one keeps its maker (T-120).
        tags: The tags of the variable; None: the variable keeps its tags (T-120).
        creates: Whether it is made where it is missing (T-118).
    """
    check_name(name)
    key, expects = PREFIX + name, None if creates else PRESENT
    about = About(by, dict(tags or {}))
    if tags is not None and (old := _answered((yield Get(space, key)))) is not None:
        about = About(_found(old).about.by, about.tags)
    put = Put(space, key, value, expects, _encode(about), keeps_about=tags is None)
    return _found(_answered((yield put), missing=name))


def delete(space: str, name: str, *, may_be_missing: bool = False) -> Talk[None]:
    """Delete a variable (T-119); without ``may_be_missing``, one that does not exist is an error."""
    check_name(name)
    answer = yield Put(space, PREFIX + name, None, None if may_be_missing else PRESENT)
    _answered(answer, missing=name)


def listed(space: str, prefix: str = "", tags: Sequence[str] = (), most: int = 1000) -> Talk[list[Variable]]:
    """List the variables whose names begin with ``prefix`` and that have all tags, by name (T-123).

    Args:
        space: The space of the host session.
        prefix: Names begin with it, compared by code points.
        tags: ``key``, or ``key=value``.
        most: How many variables are listed at most.
    """
    variables: list[Variable] = []
    after = ""
    while len(variables) < most:
        page: tuple[Item, ...] = _answered((yield Scan(space, PREFIX + prefix, after, _PAGE)))
        variables += [one for one in map(_found, page) if _has(one.about.tags, tags)]
        if len(page) < _PAGE:
            break
        after = page[-1].name
    return variables[:most]


def check_name(name: str) -> None:
    """Check the name of a variable.

    Raises:
        VariableError: The name is empty, too long, or has control characters (T-125).
    """
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        size, text = 0, f"the name {name!a} of a variable is not valid Unicode"
    else:
        text = "the name of a variable is empty; expected 1 to 256 bytes"
    if size > _NAME_BYTES:
        text = f"the name of a variable has {size} bytes; expected {_NAME_BYTES} at most"
    elif size and (name.isprintable() or not any(ord(one) < 32 or 127 <= ord(one) < 160 for one in name)):
        return
    elif size:
        text = f"the name {name!a} of a variable has control characters"
    raise VariableError(Status.INVALID_ARGUMENT, text, code="variable_name", field="variable_name")


def _found(item: Item) -> Variable:
    """The variable in an item."""
    about = _decode(item.about) if item.about else About()
    return Variable(item.name.removeprefix(PREFIX), item.value, about, item.created_ns, item.updated_ns)


def _answered(answer: Any, *, missing: str = "") -> Any:
    """Return the answer of the store, unless it is `Refused`.

    Raises:
        VariableError: The store has refused.
    """
    if not isinstance(answer, Refused):
        return answer
    if answer.reason is Reason.CHANGED:
        text = f"there is no variable {missing!r}, and create_if_missing is not set"
        raise VariableError(Status.INVALID_ARGUMENT, text, code="variable_not_found", variable=missing)
    if answer.reason in (Reason.ITEMS, Reason.BYTES):
        text = f"the variable was not written: {answer.reason.value}"
        raise VariableError(Status.RESOURCE_EXHAUSTED, text, code="variable_quota", limit_reached=answer.count)
    if answer.reason is Reason.UNAVAILABLE:
        raise VariableError(Status.UNAVAILABLE, answer.reason.value, code="store")
    code = _GONE.get(answer.reason, "unknown")
    raise VariableError(Status.NOT_FOUND, "the session of the tool bridge is gone", code=code)


def _has(tags: Mapping[str, str], wanted: Sequence[str]) -> bool:
    """Whether the tags of a variable include all of ``wanted``."""
    for one in wanted:
        key, sign, value = one.partition("=")
        if key not in tags or (sign and tags[key] != value):
            return False
    return True


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(About).decode
