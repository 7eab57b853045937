"""`Plan`: what the arguments of ``call`` mean. Nothing is opened, read or sent here; mistakes are found before that."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from invoker.client.connection import pairs, target_of, tls_of
from invoker.client.failure import UsageError
from invoker.client.request import Request
from invoker.client.sources import STDIN, Framing, Part, is_json, is_text
from invoker.client.tls import Tls

__all__ = ["Plan", "make_plan"]

JSON = "application/json"
TEXT = "text/plain"
# A media type may hold "=", but only behind its slash.
_TYPE_OF = re.compile(r"([^=/;]+)=(.+/.+)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One call, as the command line asks for it.

    Attributes:
        target: ``host:port``.
        request: What the caller asks for.
        inputs: The parts of each input.
        framings: How each input's files become frames.
        files: Path by index of the output.
        rest: Path for the other outputs; empty: stdout.
        tls: None: plain text.
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


def make_plan(args: argparse.Namespace) -> Plan:
    """Understand the arguments.

    Raises:
        UsageError: They contradict each other, or name what is not there.
    """
    input_names, output_names = _names(args.inputs), _names(args.outputs)
    inputs = _inputs(args, input_names)
    types = _content_types(args, input_names, len(inputs))
    files, rest = _files(args.output, output_names or ())
    try:
        request = Request(
            accept=_accepts(args, output_names),
            content_type=types,
            input_names=input_names or (),
            output_names=output_names or (),
            headers=dict(pairs("--header", args.header)),
            metadata=dict(pairs("--metadata", args.metadata)),
            function=args.function,
            timeout_s=args.timeout,
        )
        request.metadata_pairs({})
        tls = tls_of(args)
    except ValueError as error:
        raise UsageError(str(error)) from None
    framings = tuple(_framing(args, one) for one in types)
    return Plan(
        target=target_of(args.target),
        request=request,
        inputs=inputs,
        framings=framings,
        files=files,
        rest=rest,
        tls=tls,
    )


def _names(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    return tuple(name.strip() for name in text.split(",")) if text.strip() else ()


def _inputs(args: argparse.Namespace, names: tuple[str, ...] | None) -> tuple[tuple[Part, ...], ...]:
    parts: dict[int, list[Part]] = {}
    if args.data:
        parts[0] = [_part("--data", text) for text in args.data]
    for text in args.arg:
        key, sign, value = text.partition("=")
        if not sign:
            raise UsageError(f"--arg {text!r}: give INDEX=VALUE, INDEX=@FILE or NAME=VALUE")
        parts.setdefault(_index("--arg", key, names or (), "--inputs"), []).append(_part("--arg", value))
    readers = [index for index, each in parts.items() if any(part.path == STDIN for part in each)]
    if len(readers) > 1:
        raise UsageError("stdin can feed one input only; '@-' is given for several")
    if args.no_input:
        if parts:
            raise UsageError("--no-input contradicts --data and --arg")
    elif 0 not in parts and not readers and names != ():
        parts[0] = [Part(path=STDIN)]
    return tuple(tuple(parts.get(index, ())) for index in range(max(parts, default=-1) + 1))


def _part(option: str, text: str) -> Part:
    if not text.startswith("@"):
        return Part(os.fsencode(text))
    if text.startswith("@@"):
        return Part(os.fsencode(text[1:]))
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
    if key in names:
        return names.index(key)
    if key.isascii() and key.isdigit():
        index = int(key)
        if names and index >= len(names):
            raise UsageError(f"{option} {key}: {names_option} names only {len(names)}, counted from 0")
        if index < 1 << 10:  # a frame may say 2**31-1, but we make a feed for each
            return index
    known = f"one of {', '.join(names)}" if names else f"a number from 0, or a name that {names_option} lists"
    raise UsageError(f"{option} {key!r}: expected {known}")


def _content_types(args: argparse.Namespace, names: tuple[str, ...] | None, count: int) -> list[str]:
    given = dict.fromkeys(range(count), JSON if args.json else TEXT)
    for text in sorted(args.content_type, key=lambda one: _TYPE_OF.fullmatch(one) is not None):
        if found := _TYPE_OF.fullmatch(text):
            given[_index("--content-type", found[1].strip(), names or (), "--inputs")] = found[2].strip()
        else:
            given.update(dict.fromkeys(range(count), text))
    return [given[index] for index in range(count)]


def _framing(args: argparse.Namespace, media_type: str) -> Framing:
    is_raw = bool(args.raw or args.chunk or not is_text(media_type))
    return Framing(is_raw=is_raw, chunk_bytes=args.chunk or 0, is_json=is_json(media_type))


def _accepts(args: argparse.Namespace, names: tuple[str, ...] | None) -> str | tuple[str, ...]:
    accepts = tuple(args.accept) or ((JSON,) if args.json else ("*/*",))
    if names is None:
        return accepts
    if not names:
        if args.accept:
            raise UsageError("--outputs '' says that there is no output, but --accept asks for one")
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
