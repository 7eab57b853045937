"""`Filled`: completes the arguments of ``call`` from the server's description of the function.

If the server describes the function, the arguments are bound by the binder that all protocols share, before anything is
sent.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from invoker._pb.invoker import describe_pb2 as pb
from invoker.author.binding import MOST_INPUTS, Binder
from invoker.author.spec import CallPlan, FunctionSpec, Parameter, StreamSpec
from invoker.connect.failure import UnknownName, UsageError
from invoker.errors.wording import Fault, known_as
from invoker.protocols.riff.client.known import Known

TEXT_FIRST = "text/plain, */*;q=0.5"
STDIN = "@-"


Given = tuple[str, int, str]
"""The option of the command line, the index of its input, and the text that was typed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """The arguments of the command line, completed by the server's description of the function.

    Attributes:
        given: The values, and stdin if it feeds the first input.
        inputs: Names, in the order in which they are sent; None: they are not known.
        types: Media types of the typed values, by name of the input.
        wanted: The annotations of the inputs, by name of the input.
        outputs: Names; None: they are not known.
        accepts: The media types to accept if the caller names none, one entry for each output; empty: they are not
            known.
        sent_first: Indexes of the optional inputs.
    """

    given: list[Given]
    inputs: tuple[str, ...] | None
    types: dict[str, str]
    wanted: dict[str, str]
    outputs: tuple[str, ...] | None
    accepts: tuple[str, ...]
    sent_first: Collection[int]


def fill(args: argparse.Namespace, known: Known) -> Filled:
    """Combine the typed arguments with the server's description; typed arguments override it.

    Raises:
        UnknownName: An input is given by name, and neither ``--inputs`` nor the server says which index it has.
        UsageError: The function cannot be called with these arguments.
    """
    outputs = _names(args.outputs)
    accepts: tuple[str, ...] = ()
    if outputs is None and (known.outputs or known.is_sink):
        outputs = tuple(one.name for one in known.outputs)
        accepts = tuple(TEXT_FIRST if "text/plain" in one.media_types[:1] else "*/*" for one in known.outputs)
    typed = [("--data", "0", text) for text in args.data] + [("--arg", *_parted(text)) for text in args.arg]
    if args.no_input and typed:
        raise UsageError("--no-input contradicts --data and --arg")
    inputs, described = _names(args.inputs), [] if known.function is None else [*known.function.inputs]
    if inputs is None and known.function is not None:
        inputs, labels, given = _bound(typed, known.function, no_input=args.no_input)
        rest = [one for one in described if not one.is_option][-1:]  # describes each element of ``*args``
        described += [
            pb.Input(name=name, media_types=one.media_types) for one in rest for name in inputs if name[:1] == "#"
        ]
    else:
        labels = known.labels
        given = [(option, index_of(option, key, inputs or (), "--inputs"), text) for option, key, text in typed]
        is_fed = any(index == 0 or text == STDIN for _, index, text in given)
        given += [] if is_fed or args.no_input or inputs == () else [("stdin", 0, STDIN)]
    return Filled(
        given=given,
        inputs=inputs,
        types={one.name: one.media_types[0] for one in described if one.media_types},
        wanted={one.name: one.type for one in described if one.type},
        outputs=outputs,
        accepts=accepts,
        sent_first=range(labels, len(inputs)) if inputs and known else (),
    )


def _bound(
    typed: Sequence[tuple[str, str, str]], function: pb.Function, *, no_input: bool
) -> tuple[tuple[str, ...], int, list[Given]]:
    """The names to send, how many of them belong to required inputs, and the values."""
    keys = [key for _, key, _ in typed]
    trigger = next((one.name for one in function.inputs if one.is_trigger), None)
    if trigger is not None and {*keys} <= {"0", trigger}:  # each value calls the function, which ignores it
        calls = typed or ([] if no_input else [("--data", "0", "")])
        return (trigger,), 1, [(option, 0, text) for option, _, text in calls]
    binder, streams = _binder_of(function), [one.name for one in function.inputs if one.is_stream]
    names = [_input_of(binder, key) for key in keys]
    first = binder.call(1).names[0]
    if first and not (no_input or first in names or any(text == STDIN for *_, text in typed)):
        typed, names = [*typed, ("stdin", "0", STDIN)], [*names, first]
    is_again = [name in names[:at] and (name in streams or name[:1] == "#") for at, name in enumerate(names)]
    found = binder.named([name for name, again in zip(names, is_again, strict=True) if not again])
    labels, options = [one.name for one in binder.spec.inputs], [one.name for one in binder.spec.optional]
    if found.faults and not no_input:
        raise UsageError(_refusal(found.faults, labels))
    if function.open_inputs:
        last = max([int(key) for key in keys if _is_index(key)], default=0)
        labels[-1:] = [] if no_input else [f"#{place}" for place in range(len(labels) - 1, last + 1)]
    elif not (labels or no_input):
        labels = options[:1]
    inputs = tuple(dict.fromkeys([*labels, *(one for one in options if one in names), *found.names]))
    return inputs, len(labels), [
        (option, inputs.index(name), text) for (option, _, text), name in zip(typed, names, strict=True)
    ]  # fmt: skip


def _binder_of(function: pb.Function) -> Binder:
    """Make the binder for a described function. Positions are the indexes of its inputs; a trigger is not an input."""
    own = [one for one in function.inputs if not one.is_trigger]
    required, optional = (
        tuple(StreamSpec(one.name) for one in own if one.is_option is is_option) for is_option in (False, True)
    )
    rest = len(required) - 1 if function.open_inputs else None
    parameters = [
        Parameter(
            one.name,
            StreamSpec(one.name),
            is_optional=one.is_option or place == rest,
            by_keyword=not one.is_positional and place != rest,
            is_variadic=place == rest,
        )
        for place, one in enumerate(own)
    ]
    if function.open_names:
        parameters.append(Parameter("names", is_optional=True, by_position=False, is_variadic=True))
    spec = FunctionSpec(
        function.name,
        inputs=required,
        optional=optional,
        open_inputs=function.open_inputs,
        open_names=function.open_names,
        call=CallPlan(parameters=tuple(parameters)),
    )
    return Binder(spec, most=MOST_INPUTS, is_ordered=True, has_labels=False)


def _input_of(binder: Binder, key: str) -> str:
    """The name of an input by its name or its index."""
    known = [one.name for one in (*binder.spec.inputs, *binder.spec.optional)]
    if key in known or not _is_index(key):
        return known_as(key, known)
    found = binder.call(int(key) + 1)
    too_many = [one for one in found.faults if one.code == "too_many_args"]
    if too_many:
        raise UsageError(str(too_many[0]))
    return found.names[-1]


def _refusal(faults: Sequence[Fault], labels: Collection[str]) -> str:
    """The text of the first fault; if required inputs are missing, it says which arguments to type."""
    lacking = [one.name for one in faults if one.code == "missing_arg" and one.name in labels]
    if lacking[:1] != [faults[0].name]:
        return str(faults[0])
    arguments = " ".join(f"--arg {name}=VALUE" for name in lacking)
    return f"{faults[0]}; give {arguments}, or =@/dev/null for an input without values"


def index_of(option: str, key: str, names: Sequence[str], names_option: str) -> int:
    """The index of an input or output that an option names by its name or index.

    Raises:
        UnknownName: The text is a name, and no names are known.
        UsageError: There is no such input or output.
    """
    key = known_as(key, names)
    if key in names:
        return names.index(key)
    if _is_index(key):
        index = int(key)
        if names and index >= len(names):
            raise UsageError(f"{option} {key}: {names_option} names only {len(names)}, counted from 0")
        if index < 1 << 10:  # an index may be up to 2**31-1, but each input up to it would be opened
            return index
    if not names:
        raise UnknownName(f"{option} {key!r}: expected a number from 0, or a name that {names_option} lists")
    raise UsageError(f"{option} {key!r}: expected one of {', '.join(names)}")


def _is_index(key: str) -> bool:
    return key.isascii() and key.isdigit() and len(key) <= 10


def _parted(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign:
        raise UsageError(f"--arg {text!r}: give INDEX=VALUE, INDEX=@FILE or NAME=VALUE")
    return key, value


def _names(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    return tuple(name.strip() for name in text.split(",")) if text.strip() else ()
