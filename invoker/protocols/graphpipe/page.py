"""Makes the HTML page for browsers at the path of a model: its metadata, and examples of calls."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from invoker.tensors import IOMetadata, MetadataResponse, spelled

_STYLE: Final = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #8886; }
code, pre { font-family: ui-monospace, monospace; } pre { overflow-x: auto; padding: .8rem; background: #8882; }
footer { margin-top: 2rem; opacity: .7; }
"""


def page(metadata: MetadataResponse, path: str) -> str:
    """The HTML page of a model.

    Args:
        metadata: The metadata of the model.
        path: The path of the model.
    """
    title = escape(metadata.name)
    version = f" <small>{escape(metadata.version)}</small>" if metadata.version else ""
    where = escape(path, quote=True)
    return f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title><meta name="viewport" content="width=device-width">
<style>{_STYLE}</style></head>
<body>
<h1>{title}{version}</h1>
<p>{escape(metadata.description)}</p>
{_table("Inputs", metadata.inputs)}
{_table("Outputs", metadata.outputs)}
<h2>Call it</h2>
<pre>{escape(_program(metadata, path))}</pre>
<p>A request is one GraphPipe buffer, sent by POST to <code>{where}</code>.
The same description as JSON: <code>curl HOST:PORT{where}</code></p>
<footer>{escape(metadata.server)}</footer>
</body></html>
"""


def _program(metadata: MetadataResponse, path: str) -> str:
    """Two example programs that call the model: with the invoker's client, and with the package ``graphpipe``."""
    url = f'"http://HOST:PORT{path}"'
    names = [one.name for one in metadata.inputs]
    arrays = [name if name.isidentifier() else f"array{index}" for index, name in enumerate(names)]
    given = ", ".join(f"{name!r}: {array}" for name, array in zip(names, arrays, strict=True))
    if len(metadata.inputs) == len(metadata.outputs) == 1:
        other = f"remote.execute({url}, {arrays[0]})"
    else:
        outputs = [one.name for one in metadata.outputs]
        other = f"remote.execute_multi({url}, [{', '.join(arrays)}], {names}, {outputs})"
    return (
        f"from invoker.client import GraphPipe\n\nwith GraphPipe({url}) as model:\n    model.infer({{{given}}})\n\n"
        f"from graphpipe import remote\n\n{other}"
    )


def _table(title: str, several: Sequence[IOMetadata]) -> str:
    if not several:
        return f"<h2>{title}</h2><p>None.</p>"
    rows = "".join(
        f"<tr><td><code>{escape(one.name)}</code></td><td>{_type(one)}</td>"
        f"<td><code>{list(one.shape) if one.shape else ''}</code></td><td>{escape(one.description)}</td></tr>\n"
        for one in several
    )
    head = "<tr><th>name</th><th>type</th><th>shape</th><th></th></tr>"
    return f"<h2>{title}</h2>\n<table>{head}\n{rows}</table>"


def _type(one: IOMetadata) -> str:
    return escape(spelled(one.type)) if one.type else "any"
