"""Makes the texts of codec errors: the value, the expectation and the place; no paths, tracebacks or broken Unicode."""

from __future__ import annotations

import enum
import re
import sys
import typing
from collections.abc import Sequence
from typing import Any

import msgspec

from invoker.codecs.typed import fields, members
from invoker.errors import DecodeError, EncodeError, InvocationError, StopInvocation
from invoker.errors.wording import Place, Why, describe

_LONGEST = 400
_OURS = (InvocationError, RecursionError, UnicodeError)
_PATH = re.compile(
    r"""(?<=['"])(?:file:|[A-Za-z]:)?[/\\](?=[^'"\n/\\]*+[/\\])[^'"\n]*+(?=['"])"""  # in quotes it may have spaces
    r"""|(?<![\w:/.$`])(?:file:/+|[A-Za-z]:[/\\]|/)(?:[^\s/\\:'"`,;()]+[/\\])+[^\s/\\:'"`,;()]*"""
)
_NO_MEMBER = re.compile(
    r"""Invalid enum value (?:'.*'|".*"|-?\d+)(?: - at (?P<key>`key` in )?`\$(?P<path>(?:\.\w+|\[[\d.]+\])*)`)?""",
    re.DOTALL,
)
"""Matches msgspec's text about a value that is not a member of an Enum or a Literal, with the place of the value."""
_STEP = re.compile(r"\[(?P<index>\d+|\.\.\.)\]|\.(?P<name>\w+)")
_LISTED = 8
"""The most members of an Enum or a Literal that an error lists."""
_ADDRESS = re.compile(r" (?:object )?at 0x[0-9a-fA-F]+")


def refuse_decode(error: BaseException | str, where: Place, media_type: str, type_: Any = Any) -> DecodeError:
    """Make the DecodeError of a payload; raises StopInvocation again, which is not an error of the payload."""
    if isinstance(error, StopInvocation):
        raise error
    if isinstance(error, DecodeError):
        return error if error.place == where else error.inside(where)
    wanted = f" cannot become {spell(type_)}" if type_ is not Any else " cannot be decoded"
    is_told = isinstance(error, msgspec.ValidationError)
    hint = _choices_at(str(error), type_) if is_told else ""
    return DecodeError(wanted, place=where, met=quote(media_type), why=reason(error), hint=hint)


def refuse_encode(error: BaseException | str, where: Place, media_type: str, cls: type) -> EncodeError:
    """Make the EncodeError of a value; raises StopInvocation again, which is not an error of the value."""
    if isinstance(error, StopInvocation):
        raise error
    if isinstance(error, EncodeError):
        return error if error.place == where else error.inside(where)
    why = reason(error)
    if not isinstance(error, (str, *_OURS)):
        # This exception comes from an author's class or codec, so a policy may withhold its text; the invoker's own
        # reasons are never withheld.
        why = Why(why.text, type(error).__name__)
    return EncodeError(f": {cls.__name__} cannot be {quote(media_type)}", place=where, why=why)


def choices(wanted: Sequence[Any], *, has_literals: bool = False) -> str:
    """List the values of Enums for the text of an error. Callers send values, so names of members are not listed.

    Args:
        wanted: Annotations.
        has_literals: Whether values of Literals are listed; they are in the text already if it spells the annotation.
    """
    texts: list[str] = []
    for one in wanted:
        if has_literals and typing.get_origin(one) is typing.Literal:
            texts += map(repr, typing.get_args(one))
        elif isinstance(one, type) and issubclass(one, enum.Enum):
            texts += [repr(member.value) for member in one]
    more = f" and {len(texts) - _LISTED} more" if len(texts) > _LISTED else ""
    return f"; expected one of {', '.join(texts[:_LISTED])}{more}" if texts else ""


def _choices_at(text: str, type_: Any) -> str:
    """List the allowed values at the place where msgspec found another one."""
    found = _NO_MEMBER.fullmatch(text)
    if found is None:
        return ""
    wanted = members(type_)
    for step in _STEP.finditer(found["path"] or ""):
        inner = (_inside(one, step["name"], step["index"]) for one in wanted)
        wanted = tuple(each for one in inner if one is not None for each in members(one))
    if found["key"]:
        wanted = tuple(each for one in wanted for arg in typing.get_args(one)[:1] for each in members(arg))
    return choices(wanted, has_literals=bool(found["path"] or found["key"]))


def _inside(type_: Any, name: str | None, index: str | None) -> Any:
    """The annotation of a field or an item; None: it is not known."""
    args = typing.get_args(type_)
    if name is not None:
        return (fields(type_) or {}).get(name)
    if not args:
        return None
    if index == "..." or typing.get_origin(type_) is not tuple or args[-1] is ...:
        return args[-1 if index == "..." else 0]
    return args[int(index or 0)]


def reason(error: BaseException | str) -> Why:
    """The reason in one line, in a form that may be sent to a peer (R-117)."""
    raised = ""
    if isinstance(error, str):
        text = error
    elif isinstance(error, RecursionError):
        text = "it is nested too deeply"
    elif isinstance(error, UnicodeError):
        text = _unicode(error)
    elif isinstance(error, InvocationError):
        text, raised = error.detail, error.why.raised if error.why is not None else ""
    elif type(error).__module__.partition(".")[0] == "pydantic_core" and hasattr(error, "errors"):
        text = _pydantic(error)
    elif isinstance(error, OSError):
        text = f"{type(error).__name__}: {error.strerror or 'failed'}"
    elif isinstance(error, ValueError) and (type(error).__module__ == "msgspec" or type(error) is ValueError):
        text = str(error)
    else:
        text, raised = describe(error), type(error).__name__
    return Why(_clean(text), raised)


def quote(text: str) -> str:
    """Quote a peer's text for an error, shortened and printable."""
    return _clean(text if len(text) <= 120 else text[:120] + "...")


def spell(type_: Any) -> str:
    """An annotation as its author would write it."""
    if type_ is None or type_ is type(None):
        return "None"
    if isinstance(type_, type) and not getattr(type_, "__args__", None):
        return type_.__qualname__.rpartition("<locals>.")[2]
    if "numpy" in sys.modules:
        from invoker.tensors import array_spelled

        if text := array_spelled(type_):
            return text
    text = _ADDRESS.sub("", str(type_).replace("typing.", ""))
    return re.sub(r"[\w.]*<locals>\.|\b(?:[a-z_]\w*\.)+(?=[A-Z])", "", text)


def _unicode(error: UnicodeError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is not valid {error.encoding} ({error.reason})"
    if isinstance(error, UnicodeEncodeError):
        return f"character {error.object[error.start]!a} is not in {error.encoding} ({error.reason})"
    return str(error)


def _pydantic(error: Any) -> str:
    """Format only fields and messages, since pydantic's own text repeats the input and contains a URL."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    lines = [f"{'.'.join(str(step) for step in one['loc']) or 'value'}: {one['msg']}" for one in found[:5]]
    return "; ".join(lines) + ("; ..." if len(found) > 5 else "")


def _clean(text: str) -> str:
    text = _ADDRESS.sub("", _PATH.sub("<path>", text[: 4 * _LONGEST]))
    text = "".join(sign if sign.isprintable() else " " if sign.isspace() else ascii(sign)[1:-1] for sign in text)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
