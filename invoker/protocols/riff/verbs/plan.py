"""`Plan`: reads the arguments of ``call``. It opens, reads and sends nothing, so mistakes are found before any I/O."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from invoker.connect.connection import pairs, target_of, tls_of
from invoker.connect.failure import UsageError
from invoker.connect.sources import STDIN, Framing, Part, is_json, is_text
from invoker.connect.tls import Tls
from invoker.protocols.riff.client.known import NOTHING, Known
from invoker.protocols.riff.client.request import Request
from invoker.protocols.riff.verbs.filling import Filled, fill, index_of

JSON = "application/json"
TEXT = "text/plain"
# a media type may contain "=", but only after its slash
_TYPE_OF = re.compile(r"([^=/;]+)=(.+/.+)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One call as the command line describes it.

    Attributes:
        target: ``host:port``.
        request: The request.
        inputs: The parts of each input.
        framings: For each input, how its files are cut into frames.
        files: Path by index of the output.
        rest: The path for all other outputs; empty: stdout.
        tls: The TLS settings of the connection; None: plain text.
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
    """Turn the arguments of the command line into a plan of the call.

    Args:
        args: The parsed arguments.
        known: How the server describes the function.

    Raises:
        UnknownName: The arguments name an input or output whose index is unknown, since the server did not describe it.
        UsageError: The arguments contradict each other, or name an input or output that does not exist.
    """
    filled = fill(args, known)
    inputs = _inputs(filled)
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


def _inputs(filled: Filled) -> tuple[tuple[Part, ...], ...]:
    parts: dict[int, list[Part]] = {}
    for option, index, text in filled.given:
        parts.setdefault(index, []).append(_part(option, text))
    if sum(any(part.path == STDIN for part in each) for each in parts.values()) > 1:
        raise UsageError("stdin can feed one input only; '@-' is given for several")
    return tuple(tuple(parts.get(index, ())) for index in range(max(parts, default=-1) + 1))


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


def _content_types(args: argparse.Namespace, filled: Filled, count: int) -> list[str]:
    names = filled.inputs or ()
    told = [filled.types.get(name, TEXT) for name in names[:count]] + [TEXT] * (count - len(names))
    given = dict.fromkeys(range(count), JSON) if args.json else dict(enumerate(told))
    for text in sorted(args.content_type, key=lambda one: _TYPE_OF.fullmatch(one) is not None):
        if found := _TYPE_OF.fullmatch(text):
            given[index_of("--content-type", found[1].strip(), names, "--inputs")] = found[2].strip()
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
            files[index_of("--output", key, names, "--outputs")] = path
        elif rest:
            raise UsageError(f"--output {text!r}: another FILE is given already; give INDEX=FILE or NAME=FILE")
        else:
            rest = path = text
        if not path:
            raise UsageError(f"--output {text!r} names no file")
        if Path(path).is_dir() or not Path(path).absolute().parent.is_dir():
            raise UsageError(f"--output {text!r}: {path} is a directory, or lies in one that does not exist")
    return files, rest
