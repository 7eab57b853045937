"""docs/reference/api.md: what authors and testers of functions import, made from signatures and docstrings."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, get_overloads

from invoker.author.protocoloptions import ProtocolOption, title

INTRO = """Functions import from `invoker`, their tests from `invoker.testing`. Tasks with secure aggregation
import `quantize`, `dequantize`, `centred` and `widest_scale` from `invoker.secagg`. Only the names on this page are
stable; everything else may change without notice. How to use them:
[write a streaming function](../how-to/write-a-streaming-function.md),
[take several inputs](../how-to/take-several-inputs.md), [add a codec](../how-to/add-a-codec.md),
[test a function](../how-to/test-a-function.md), [serve from a program](../how-to/serve-from-a-program.md),
[mount a function](../how-to/mount-into-fastapi.md).
Clients have pages of their own:
[call a function](../how-to/call-a-function.md), [drive Evergreen sessions](../how-to/drive-evergreen-from-python.md),
[ask a GraphPipe model](../how-to/serve-a-tensor-model.md#call-it-from-python)."""

OPTIONS = """`@function(options=[evergreen.Nodes(retain=False)])` takes one of each. They lie with their protocols:

```python
from invoker.protocols import evergreen, graphpipe, toolbridge
```

This loads nothing of a protocol but its options. Other protocols ignore them. `python -m invoker inspect` shows them.
They were keywords of `@function` before; those are understood until 0.2, with a warning that names the line
to write:"""

# A heading of a docstring, and its rows: `name: text`, whose further lines are indented.
_HEADING = re.compile(r"^(Args|Attributes|Returns|Raises):$")
_ROW = re.compile(r"^ {4}(\*{0,2}[\w`.]+): (.*)$")
_ID = re.compile(r"\s\([A-Z]{1,2}-\d+(?:, [A-Z]{1,2}-\d+)*\)")
_MADE_ELSEWHERE = {
    "Context",
    "Headers",
    "Codec",
    "Inputs",
    "Outputs",
    "OneOutput",
    "Result",
    "InputCancelled",
    "StopInvocation",
    "Status",
    "Serving",
    "Mounted",
}
_WIDTH = 110


def api_page(made: str, table: Callable[..., list[str]]) -> Iterator[str]:
    """The page, without two blank lines in a row.

    Args:
        made: The line that says that it is made.
        table: Makes a Markdown table of a head and rows.
    """
    before = ""
    for line in _page(made, table):
        if line or before:
            yield line
        before = line


def _page(made: str, table: Callable[..., list[str]]) -> Iterator[str]:
    import invoker
    from invoker import context, testing
    from invoker.author.formerwords import FORMER
    from invoker.protocols import evergreen, graphpipe, toolbridge
    from invoker.protocols.federated import secagg
    from invoker.server import mounted, serving

    yield from ("# Python API", "", made, "", *INTRO.splitlines())
    parts = {
        "To write functions": (
            invoker.function, invoker.Context, context.Inputs, context.Outputs, context.OneOutput, invoker.Message,
            invoker.Headers, invoker.Output, invoker.Metadata, invoker.Ref, invoker.tee, invoker.Tensor, invoker.Field,
            invoker.rule,
        ),
        "To say what only one protocol understands": (
            graphpipe.Casting, graphpipe.Rows, evergreen.Nodes, toolbridge.ToolInfo,
        ),
        "To learn from devices": (
            invoker.Checkpoint, invoker.Update, secagg.quantize, secagg.dequantize, secagg.centred, secagg.widest_scale,
        ),
        "To end a call": (invoker.StatusError, invoker.Status, invoker.InputCancelled, invoker.StopInvocation),
        "To hear of errors": (invoker.NestedError, invoker.ToolError, invoker.VariableError),
        "To read and write other media types": (invoker.codec, invoker.Codec),
        "To serve from a program": (invoker.serve, serving.Serving, invoker.asgi, mounted.Mounted),
        "To test functions": (testing.Harness, testing.Result, testing.TestServer),
    }  # fmt: skip
    for head, things in parts.items():
        yield from ("", f"## {head}")
        are_options = isinstance(things[0], type) and issubclass(things[0], ProtocolOption)
        if are_options:
            yield from ("", *OPTIONS.splitlines(), "")
            rows = [
                (f"`{word}=`", f"`{protocol}.{kind}({field}=...)`") for word, (protocol, kind, field) in FORMER.items()
            ]
            yield from table(("keyword until 0.2", "option"), rows)
        for one in things:
            yield from ("", f"### {title(one) if are_options else one.__name__}", "")
            yield from _about(one, table)


def _about(thing: Any, table: Callable[..., list[str]]) -> Iterator[str]:
    if thing.__name__ not in _MADE_ELSEWHERE:
        yield from ("```python", *_signature(thing), "```", "")
    yield from _prose(inspect.getdoc(thing) or "", table)
    if not inspect.isclass(thing) or issubclass(thing, dict | ProtocolOption):
        return
    for name, method in vars(thing).items():
        if name.startswith("_") or not (inspect.isfunction(method) or isinstance(method, property)):
            continue
        if (inspect.getdoc(method) or "").startswith("For drivers: "):
            continue
        code = method.fget if isinstance(method, property) else method
        shown = f"{name}: {_type(inspect.signature(code).return_annotation)}"  # type: ignore[arg-type]
        text = [shown] if isinstance(method, property) else _signature(method, name)
        yield from ("", f"#### {thing.__name__}.{name}", "", "```python", *text, "```", "")
        yield from _prose(inspect.getdoc(method) or "", table)
    if thing.__name__ == "Status":
        yield from ("", ", ".join(f"`{one.name}` ({one.value})" for one in thing) + ".")


def _signature(thing: Any, name: str = "") -> list[str]:
    """As one writes it: on one line, or with a line for each parameter."""
    said = get_overloads(thing)[-1] if inspect.isfunction(thing) and get_overloads(thing) else thing
    signature = inspect.signature(said)
    parameters, is_keyword_only = [], False
    for one in signature.parameters.values():
        if one.name == "self":
            continue
        if one.kind is one.KEYWORD_ONLY and not is_keyword_only:
            is_keyword_only = True
            parameters.append("*")
        is_keyword_only = is_keyword_only or one.kind is one.VAR_POSITIONAL
        stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        text = f"{stars}{one.name}" + ("" if one.annotation is one.empty else f": {_type(one.annotation)}")
        parameters.append(text if one.default is one.empty else f"{text} = {_value(one.default)}")
    gives = "" if inspect.isclass(thing) else f" -> {_type(signature.return_annotation)}"
    prefix = "await " if inspect.iscoroutinefunction(thing) else ""
    start, end = f"{prefix}{name or thing.__name__}(", f"){gives}"
    line = start + ", ".join(parameters) + end
    return [line] if len(line) <= _WIDTH else [start, *(f"    {one}," for one in parameters), end]


def _type(annotation: Any) -> str:
    shown = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return shown.replace("collections.abc.", "").replace("~", "")


def _value(default: Any) -> str:
    return "Headers({})" if default == {} else repr(default)


def _prose(doc: str, table: Callable[..., list[str]]) -> Iterator[str]:
    """A docstring as Markdown: its parts become tables, its examples code."""
    text = _ID.sub("", doc).replace("``", "`")
    for part in re.split(r"\n\n(?=\S)", text):
        first, _, rest = part.partition("\n")
        if match := _HEADING.match(first):
            rows = _rows(rest)
            head = {"Args": "argument", "Attributes": "attribute", "Raises": "raises"}.get(match[1])
            if head and rows:
                yield from table((head, "meaning"), [(f"`{name}`", about) for name, about in rows])
            else:
                yield f"{match[1]}: {' '.join(rest.split())}"
        elif "::\n" in part:
            before, _, code = part.partition("::\n")
            yield from (f"{' '.join(before.split())}:", "", "```python", textwrap.dedent(code).strip("\n"), "```")
        else:
            yield part
        yield ""


def _rows(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for line in text.splitlines():
        if match := _ROW.match(line):
            found.append((match[1], match[2]))
        elif found:
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}")
    return found
