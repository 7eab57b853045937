"""``python -m invoker inspect mymod:fn``: shows how a function was understood, without starting it.

It shows the inputs and outputs with their types and media types, the style, the hooks, the form as an action and, for
functions of arrays, as a model of tensors, and warnings. If the function was not understood, the error that serving
would report is printed on stderr and the exit code is not 0.
"""

from __future__ import annotations

import argparse
import json
import os
import reprlib
import sys
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module
from typing import Any

from invoker.attach.declared import Listing
from invoker.author.prepare import Prepared, prepare
from invoker.author.protocoloptions import title
from invoker.author.signature import name_of
from invoker.author.spec import HOOK_TIMEOUT_S, FunctionSpec, StreamSpec, Style, Take
from invoker.author.spelling import render
from invoker.errors import StartupError
from invoker.execution.placement import placement_of
from invoker.server.table import TABLE

_ANY_TYPE = "any codec"
_BRIEF = reprlib.Repr()
_BRIEF.maxstring = _BRIEF.maxother = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("entrypoint", help="module:function, file.py:function, file.pkl, a module, or rounds.toml")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    for row in TABLE.rows:
        if (one := row.listing) is not None:
            parser.add_argument(one.flag, action="store_const", const=one, dest="listing", help=one.about)
    parser.add_argument("--openapi", action="store_true", help="print the OpenAPI document of the HTTP port")
    parser.add_argument(
        "--allow-pickle", action="store_true", help="load a .pkl, which runs any code it holds with all your rights"
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of what failed")


def run(args: argparse.Namespace) -> int:
    """Print the description of a function, or of each function of a catalogue.

    Returns:
        The exit code: 0, that of the error, or 141 if the output was closed by its reader.
    """
    listing: Listing | None = getattr(args, "listing", None)
    kind, file = listing.kind if listing is not None else "functions", TABLE.entry_file(args.entrypoint)
    members: dict[str, Any] = {}
    try:
        if file is not None:
            read = import_module(file.module).inspected
            functions, members, behind = read(args.entrypoint, allow_pickle=args.allow_pickle)
            behind = f"\n\n{behind}"
        else:
            functions, behind = prepare(args.entrypoint, allow_pickle=args.allow_pickle), ""
        if args.openapi:
            described, text = _as_openapi(functions)
        elif listing is not None:
            described, text = import_module(listing.module).listed([one.spec for one in functions])
        else:
            described, text = _as_functions(functions)
        text += "" if args.openapi else behind
    except StartupError as error:
        if args.debug:
            traceback.print_exception(error)
        if args.json:
            print(json.dumps({"entrypoint": args.entrypoint, kind: [], "error": error.detail}, indent=2))
        print(f"invoker: {error.detail}", file=sys.stderr)
        return error.exit_code
    if args.json and not args.openapi:
        text = json.dumps({"entrypoint": args.entrypoint, kind: described, **members, "error": None}, indent=2)
    try:
        print(text, flush=True)
    except BrokenPipeError:  # for example by `| head`; drop the buffered output, or Python reports an error at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return 0


def _as_functions(functions: Sequence[Prepared]) -> tuple[list[dict[str, Any]], str]:
    """The descriptions of functions, for JSON and for readers."""
    specs = [one.spec for one in functions]
    return [describe_function(one) for one in functions], "\n\n".join(_text(one, specs) for one in functions)


def _inspections() -> list[Any]:
    """The modules that describe how protocols understand a function."""
    return [import_module(one.inspection) for one in TABLE.rows if one.inspection]


def _as_openapi(functions: Sequence[Prepared]) -> tuple[list[dict[str, Any]], str]:
    """The text of ``GET /openapi.json``, which is always JSON."""
    from invoker.codecs import builtin
    from invoker.core.catalog import Catalog
    from invoker.core.engine import Engine
    from invoker.protocols.web.service.functions import openapi_of

    engine = Engine(Catalog([one.function for one in functions]), builtin())
    return [], json.dumps(openapi_of(engine), indent=2, ensure_ascii=False)


def describe_function(prepared: Prepared) -> dict[str, Any]:
    """Describe a function with values that JSON can hold."""
    spec = prepared.spec
    hooks = spec.hooks
    told = [one.described(spec) for one in _inspections()]
    return {
        "name": spec.name,
        "entrypoint": spec.entrypoint,
        "doc": spec.doc,
        "style": spec.style.value,
        "async": spec.is_async,
        "concurrency": spec.concurrency,
        "inputs": [_stream(index, one) for index, one in enumerate(spec.inputs)],
        "open_inputs": spec.open_inputs,
        "optional": [_described(one) | _default(spec, one) for one in spec.optional],
        "open_names": spec.open_names,
        "outputs": _outputs(spec, told),
        "open_outputs": spec.open_outputs,
        "hooks": {
            "init": _name(hooks.init),
            "destroy": _name(hooks.destroy),
            "ready": _name(hooks.ready),
            "timeout_s": hooks.timeout_s or HOOK_TIMEOUT_S,
            "instantiated": spec.call.make,
            "context_manager": prepared.function.hooks.is_context_manager,
        },
        "limits": asdict(spec.bounds) | {"isolation": spec.isolation},
        **{name: value for one in told for name, value in one.items() if name != "outputs"},
        "options": {title(type(one)): asdict(one) for one in spec.options.values()},
        "warnings": [str(finding) for finding in prepared.warnings],
    }


def _stream(index: int, stream: StreamSpec) -> dict[str, Any]:
    return {"index": index, **_described(stream)}


def _outputs(spec: FunctionSpec, told: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The outputs, each with the protocols' additions to its description."""
    found = [_stream(index, one) for index, one in enumerate(spec.outputs)]
    for one in told:
        for output, more in zip(found, one.get("outputs", ()), strict=False):
            output.update(more)
    return found


def _described(stream: StreamSpec) -> dict[str, Any]:
    return {
        "name": stream.name,
        "type": render(stream.type),
        "take": stream.take.value,
        "single": stream.single,
        "media_types": list(stream.media_types),
    }


def _name(hook: Any) -> str | None:
    return None if hook is None else name_of(hook)


def _text(prepared: Prepared, beside: Sequence[FunctionSpec]) -> str:
    spec = prepared.spec
    title = spec.name + (f"  ({spec.entrypoint})" if spec.entrypoint not in ("", spec.name) else "")
    rows = [("style", _style(spec, beside))]
    if not spec.spare or any(not one.is_ignored for one in spec.inputs):
        rows += _rows("input", spec.inputs, none="none: it is a source", is_open=spec.open_inputs)
    rows += _options(spec)
    rows += _rows("output", spec.outputs, none="none: it is a sink", is_open=spec.open_outputs)
    for inspection in _inspections():
        rows += inspection.rows(spec)
    rows += [("with", f"{one.protocol}.{one!r}") for one in spec.options.values()]
    if spec.concurrency > 1:
        rows.append(("concurrency", f"{spec.concurrency} calls of an invocation may overlap; results keep their order"))
    rows += _limits(spec)
    rows += _hooks(prepared)
    rows += [("warning", str(finding)) for finding in prepared.warnings]
    width = max(len(label) for label, _ in rows)
    lines = [title]
    if spec.doc:
        lines.append(f"  {spec.doc.splitlines()[0]}")
    return "\n".join(lines + [f"  {label.ljust(width)}  {text}" for label, text in rows])


def _style(spec: FunctionSpec, beside: Sequence[FunctionSpec]) -> str:
    calls = "called once an invocation" if spec.style.value == "streaming" else "called once an item"
    return f"{spec.style.value}: {calls}; {placement_of(spec, beside).value}"


def _rows(label: str, streams: tuple[StreamSpec, ...], *, none: str, is_open: bool) -> list[tuple[str, str]]:
    if not streams:
        return [(label, "as many as the caller asks for, by Output(index or name, value)" if is_open else none)]
    rows = [(f"{label} {index}", _row(one)) for index, one in enumerate(streams)]
    if is_open:
        number = len(streams) - 1
        rows[-1] = (f"{label} {number}+", f"{rows[-1][1]}; as many as the caller sends")
    return rows


def _options(spec: FunctionSpec) -> list[tuple[str, str]]:
    """The inputs that a caller may give in addition to the required ones (R-164)."""
    shown = {one.name for one in spec.inputs}
    is_mapped = spec.style is Style.REQUEST_REPLY and all(one.is_ignored for one in spec.inputs)
    rows: list[tuple[str, str]] = []
    for one in spec.optional:
        if one.name not in shown:
            said = f"; default {told}" if (told := _default(spec, one).get("default")) is not None else ""
            how = "; mapped, called once if nothing comes" if is_mapped and not rows else ""
            rows.append(("option", f"{_row(one)}{said}{how}"))
    if spec.open_names:
        rows.append(("**", "any other input that the caller names"))
    return rows


def _default(spec: FunctionSpec, option: StreamSpec) -> dict[str, str]:
    """The default of an option as Python source, cut if it is long; empty for ``*args``."""
    of = {one.stream.name: one for one in spec.call.parameters if one.stream is not None and not one.is_variadic}
    return {"default": _BRIEF.repr(of[option.name].default)} if option.name in of else {}


def _row(stream: StreamSpec) -> str:
    text = f"{stream.name}: {render(stream.type)}"
    if stream.take is Take.MESSAGE:
        text = f"{stream.name}: Message[{render(stream.type)}]"
    elif stream.take is Take.HEADERS:
        text = f"{stream.name}: Headers"
    if stream.single:
        text += ", one value"
    return f"{text}  [{', '.join(stream.media_types) or _ANY_TYPE}]"


def _limits(spec: FunctionSpec) -> list[tuple[str, str]]:
    """List the limits of the function's invocations."""
    bounds = spec.bounds
    said = [
        f"an invocation ends after {bounds.timeout_s:g} s" if bounds.timeout_s is not None else "",
        f"{bounds.max_calls} at once" if bounds.max_calls else "",
        f"{bounds.calls_per_minute} of one party in 60 s" if bounds.calls_per_minute else "",
        f"{bounds.memory_bytes} bytes of memory" if bounds.memory_bytes else "",
        "each in a child process" if spec.isolation else "",
    ]
    told = "; ".join(one for one in said if one)
    return [("limits", told)] if told else []


def _hooks(prepared: Prepared) -> list[tuple[str, str]]:
    hooks = prepared.spec.hooks
    rows = []
    if prepared.spec.call.make:
        rows.append(("made", "the class is instantiated once, at start"))
    if prepared.function.hooks.is_context_manager:
        rows.append(("with", "entered once at start, left after the last invocation"))
    timeout_s = hooks.timeout_s or HOOK_TIMEOUT_S
    for kind in ("init", "destroy", "ready"):
        hook = getattr(hooks, kind)
        if hook is not None:
            rows.append((kind, f"{_name(hook)}, at most {timeout_s:g} s"))
    return rows
