"""`Filled`: the arguments of ``call``, completed by the server's description of the function, as if typed."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from dataclasses import dataclass

from invoker.connect.failure import UsageError
from invoker.errors.wording import known_as, unknown
from invoker.protocols.riff.client.known import Known
from invoker.settings.usage import nearest

__all__ = ["Filled", "fill"]

TEXT_FIRST = "text/plain, */*;q=0.5"


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """The arguments of the command line, completed by the server's description of the function.

    Attributes:
        data: Values of input 0.
        arg: ``INPUT=VALUE``.
        inputs: Names, in the order in which they are sent; None: they are not known.
        types: Media types of typed values, by name of the input.
        wanted: What the author takes, in Python's words, likewise.
        outputs: Names; None: they are not known.
        accepts: What to ask for where the caller does not say, one an output; empty: it is not known.
        sent_first: Indexes of the options.
        required: Names of the inputs that have no default, as the server describes them.
    """

    data: list[str]
    arg: list[str]
    inputs: tuple[str, ...] | None
    types: dict[str, str]
    wanted: dict[str, str]
    outputs: tuple[str, ...] | None
    accepts: tuple[str, ...]
    sent_first: Collection[int]
    required: Collection[str] = ()


def fill(args: argparse.Namespace, known: Known) -> Filled:
    """Combine what was typed and what is known; what was typed wins.

    Raises:
        UsageError: An input is named that the function is known not to have.
    """
    outputs = _names(args.outputs)
    accepts: tuple[str, ...] = ()
    if outputs is None and (known.outputs or known.is_sink):
        outputs = tuple(one.name for one in known.outputs)
        accepts = tuple(TEXT_FIRST if "text/plain" in one.media_types[:1] else "*/*" for one in known.outputs)
    data, arg, inputs, count = list(args.data), list(args.arg), _names(args.inputs), known.labels
    types = {one.name: one.media_types[0] for one in known.inputs if one.media_types}
    if inputs is None and (known.inputs or known.is_source):
        own = [one.name for one in known.inputs]
        arg = [_by_name(text, own, known.name) for text in arg]
        named = {text.partition("=")[0] for text in arg}
        if args.no_input and all(one.is_option for one in known.inputs):
            count = 0
        inputs = (*own[:count], *(name for name in own[count:] if name in named))
        if not (args.no_input or data or arg) and any(one.is_trigger for one in known.inputs):
            data = [""]  # the value does not matter: the function is called once
    elif inputs is None and known.function is not None and known.function.open_inputs:
        own = [one.name for one in known.function.inputs if not one.is_option]
        keys = [text.partition("=")[0] for text in arg]
        given = [int(key) for key in keys if key.isascii() and key.isdigit() and len(key) < 4]
        if own and len(given) == len(keys):  # each element of ``*args`` that the caller gives has a label
            more = range(len(own) - 1, max(given, default=-1) + 1)
            inputs = (*own[:-1], *(f"{own[-1]}{index}" for index in more)) or None
    return Filled(
        data=data,
        arg=arg,
        inputs=inputs,
        types=types,
        wanted={one.name: one.type for one in known.inputs},
        outputs=outputs,
        accepts=accepts,
        sent_first=range(count, len(inputs)) if inputs and known.inputs else (),
        required=[] if args.inputs else [one.name for one in known.inputs if not (one.is_option or one.is_trigger)],
    )


def _by_name(text: str, own: list[str], function: str) -> str:
    """Turn ``1=x`` into ``NAME=x``, since the wire numbers only those options that are given."""
    key, sign, value = text.partition("=")
    if not sign or not own:
        return text
    key = known_as(key, own)
    if key in own:
        return f"{key}={value}"  # the next reader of this text reports what is wrong with it
    if key.isascii() and key.isdigit() and int(key) < len(own):
        return f"{own[int(key)]}={value}"
    raise UsageError(f"--arg {key!r}: {unknown(function, key, own, meant=nearest(key, own))}")


def _names(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    return tuple(name.strip() for name in text.split(",")) if text.strip() else ()
