"""`Plan`: reads the arguments of ``call``. Nothing is opened, read or sent here; mistakes are found before that."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from invoker.connect.connection import pairs, target_of, tls_of
from invoker.connect.failure import UnknownName, UsageError
from invoker.connect.sources import STDIN, Framing, Part, is_json, is_text
from invoker.connect.tls import Tls
from invoker.errors.wording import known_as, missing
from invoker.protocols.riff.client.filling import Filled, fill
from invoker.protocols.riff.client.known import NOTHING, Known
from invoker.protocols.riff.client.request import Request

__all__ = ["Plan", "make_plan"]

JSON = "application/json"
TEXT = "text/plain"
# a media type may contain "=", but only after its slash
_TYPE_OF = re.compile(r"([^=/;]+)=(.+/.+)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One call, as the command line asks for it.

    Attributes:
        target: ``host:port``.
        request: The request.
        inputs: The parts of each input.
        framings: How each input's files become frames.
        files: Path by index of the output.
        rest: Path for the other outputs; empty: stdout.
        tls: How to secure the connection; None: plain text.
    """

    target: str
    request: Request
    inputs: tuple[tuple[Part, ...], ...] = ()
    framings: tuple[Framing, ...] = ()
    files: dict[int, str] = field(default_factory=dict)
    rest: str = ""
    tls: Tls | None = None

    @property
    def reads_stdin(self) -> bool:
        """Whether an input comes from stdin."""
        return any(part.path == STDIN for parts in self.inputs for part in parts)


def make_plan(args: argparse.Namespace, known: Known = NOTHING) -> Plan:
    """Understand the arguments.

    Args:
        args: The parsed arguments.
        known: How the server describes the function.

    Raises:
        UnknownName: The arguments name an input or output whose index is unknown, since the server did not describe it.
        UsageError: The arguments contradict each other, or name an input or output that does not exist.
    """
    filled = fill(args, known)
    inputs = _inputs(args, filled, known)
    types = _content_types(args, filled, len(inputs))
    files, rest = _files(args.output, filled.outputs or ())
    try:
        request = Request(
            accept=_accepts(args, filled),
            content_type=types,
            input_names=filled.inputs,
            output_names=filled.outputs,
            sent_first=filled.sent_first,
            headers=dict(pairs("--header", args.header)),
            metadata=dict(pairs("--metadata", args.metadata)),
            function=args.function,
            timeout_s=args.timeout,
        )
        request.metadata_pairs({})
        tls = tls_of(args)
    except ValueError as error:
        raise UsageError(str(error)) from None
    framings = tuple(_framing(args, filled, index, one) for index, one in enumerate(types))
    return Plan(
        target=target_of(args.target),
        request=request,
        inputs=inputs,
        framings=framings,
        files=files,
        rest=rest,
        tls=tls,
    )


def _inputs(args: argparse.Namespace, filled: Filled, known: Known) -> tuple[tuple[Part, ...], ...]:
    names = filled.inputs
    parts: dict[int, list[Part]] = {}
    if filled.data:
        parts[0] = [_part("--data", text) for text in filled.data]
    for text in filled.arg:
        key, sign, value = text.partition("=")
        if not sign:
            raise UsageError(f"--arg {text!r}: give INDEX=VALUE, INDEX=@FILE or NAME=VALUE")
        parts.setdefault(_index("--arg", key, names or (), "--inputs"), []).append(_part("--arg", value))
    if parts and names == () and args.inputs is None:
        raise UsageError("the function takes no input; leave out --data and --arg")
    readers = [index for index, each in parts.items() if any(part.path == STDIN for part in each)]
    if len(readers) > 1:
        raise UsageError("stdin can feed one input only; '@-' is given for several")
    if args.no_input:
        if parts:
            raise UsageError("--no-input contradicts --data and --arg")
    elif 0 not in parts and not readers and names != ():
        parts[0] = [Part(path=STDIN)]
    if not args.no_input:
        _require_all(known.name, filled, parts)
    return tuple(tuple(parts.get(index, ())) for index in range(max(parts, default=-1) + 1))


def _require_all(function: str, filled: Filled, given: Collection[int]) -> None:
    """Refuse a call that lacks the value of an input, without which its function would not run properly."""
    lacking = [name for at, name in enumerate(filled.inputs or ()) if name in filled.required and at not in given]
    if lacking:
        arguments = " ".join(f"--arg {name}=VALUE" for name in lacking)
        fault = missing(function, lacking[0])
        raise UsageError(f"{fault}; give {arguments}, or =@/dev/null for an input without values")


def _part(option: str, text: str) -> Part:
    if not text.startswith("@"):
        return Part(text.encode(errors="surrogateescape"))
    if text.startswith("@@"):
        return Part(text[1:].encode(errors="surrogateescape"))
    path = text[1:]
    if path != STDIN:
        if not path:
            raise UsageError(
                f"{option} '@' names no file; give @FILE, @- for stdin, or @@ for a value that begins with @"
            )
        if Path(path).is_dir():
            raise UsageError(f"{option} {text!r}: {path} is a directory")
        if not os.access(path, os.R_OK):
            raise UsageError(f"{option} {text!r}: cannot read {path}; a value that begins with @ is written @@")
    return Part(path=path)


def _index(option: str, key: str, names: Sequence[str], names_option: str) -> int:
    key = known_as(key, names)
    if key in names:
        return names.index(key)
    if key.isascii() and key.isdigit():
        index = int(key)
        if names and index >= len(names):
            raise UsageError(f"{option} {key}: {names_option} names only {len(names)}, counted from 0")
        if index < 1 << 10:  # an index may be up to 2**31-1, but each input costs a feed
            return index
    if not names:
        raise UnknownName(f"{option} {key!r}: expected a number from 0, or a name that {names_option} lists")
    raise UsageError(f"{option} {key!r}: expected one of {', '.join(names)}")


def _content_types(args: argparse.Namespace, filled: Filled, count: int) -> list[str]:
    names = filled.inputs or ()
    told = [filled.types.get(name, TEXT) for name in names[:count]] + [TEXT] * (count - len(names))
    given = dict.fromkeys(range(count), JSON) if args.json else dict(enumerate(told))
    for text in sorted(args.content_type, key=lambda one: _TYPE_OF.fullmatch(one) is not None):
        if found := _TYPE_OF.fullmatch(text):
            given[_index("--content-type", found[1].strip(), names, "--inputs")] = found[2].strip()
        else:
            given.update(dict.fromkeys(range(count), text))
    return [given[index] for index in range(count)]


def _framing(args: argparse.Namespace, filled: Filled, index: int, media_type: str) -> Framing:
    is_raw = bool(args.raw or args.chunk or not is_text(media_type))
    made = Framing(is_raw=is_raw, chunk_bytes=args.chunk or 0, is_json=is_json(media_type))
    name = filled.inputs[index] if filled.inputs and index < len(filled.inputs) else ""
    if args.json or args.content_type or name not in filled.wanted:
        return made
    return replace(made, hint=f"input '{name}' takes {filled.wanted[name]}, which is written as {media_type}")


def _accepts(args: argparse.Namespace, filled: Filled) -> str | tuple[str, ...]:
    accepts = tuple(args.accept) or ((JSON,) if args.json else filled.accepts or ("*/*",))
    names = filled.outputs
    if names is None:
        return accepts
    if not names:
        if args.accept:
            who = "the function has no output" if args.outputs is None else "--outputs '' says that there is no output"
            raise UsageError(f"{who}, but --accept asks for one")
        return ()
    if len(accepts) == 1:
        return accepts * len(names)
    if len(accepts) != len(names):
        raise UsageError(
            f"--accept is given {len(accepts)} times for {len(names)} outputs; give it once for all, or once an output"
        )
    return accepts


def _files(outputs: Sequence[str], names: Sequence[str]) -> tuple[dict[int, str], str]:
    files: dict[int, str] = {}
    rest = ""
    for text in outputs:
        key, sign, path = text.partition("=")
        if sign and (key in names or (key.isascii() and key.isdigit())):
            files[_index("--output", key, names, "--outputs")] = path
        elif rest:
            raise UsageError(f"--output {text!r}: another FILE is given already; give INDEX=FILE or NAME=FILE")
        else:
            rest = path = text
        if not path:
            raise UsageError(f"--output {text!r} names no file")
        if Path(path).is_dir() or not Path(path).absolute().parent.is_dir():
            raise UsageError(f"--output {text!r}: {path} is a directory, or lies in one that does not exist")
    return files, rest
