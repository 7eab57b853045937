"""Calls functions by the client that openapi-python-client has made; prints what they give, as JSON by name.

Run by the Python of .interop/openapi, with the address of the server and the folder of the client.
"""

from __future__ import annotations

import importlib
import io
import json
import sys
from typing import Any

url, folder = sys.argv[1:]
sys.path.insert(0, folder)

made = importlib.import_module("made")
models = importlib.import_module("made.models")
types = importlib.import_module("made.types")
client = made.Client(url)


def function(name: str) -> Any:
    """The module of one operation."""
    return importlib.import_module(f"made.api.functions.{name}")


def plain(value: Any) -> Any:
    """A result as JSON has it."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return value.payload.read().hex() if isinstance(value, types.File) else value


def call(name: str, body: Any = types.UNSET, **said: Any) -> Any:
    """What a function gives; where there is no value, the status and the text."""
    if body is not types.UNSET:
        said["body"] = body
    response = function(name).sync_detailed(client=client, **said)
    if response.status_code >= 300:
        return [int(response.status_code), response.parsed]
    return plain(response.parsed)


Point, Color = models.Point, models.Color
told = {
    "value": call("square", 7),
    "object": call("square", models.SquareInput(x=-3)),
    "get": call("get_square", x=5),
    "refused": call("square", models.SquareInput(x=100_000)),
    "dataclass": call("move", Point(x=1, y=2.5), by=models.MoveBy.VALUE_2),
    "named dataclass": call("move", models.MoveInput(point=Point(x=1))),
    "recursive": call("prune", models.Tree(name="a", children=[models.Tree(name="b", children=[])])),
    "enum": call("echo", models.EchoInput(words="a", prefix="<", color=Color.BLUE)),
    "several": call("repeat", models.RepeatInput(words="a", counts=2)),
    "bytes": call("gray", types.File(payload=io.BytesIO(b"\x00\xff"))),
    "file": call(
        "upload", models.UploadForm(name="a", image=types.File(io.BytesIO(b"12"), "a.bin", "application/octet-stream"))
    ),
    "rows": call("norm", [[1, 2], [3, 4]]),
    "tuples": call("swap", [[1, "a"], [2, "b"]]),
    "lists and dates": call("get_total", xs=[1, 2], tags=["a"], when="2026-01-02"),
    "any name": call("named", models.NamedInput.from_dict({"a": 1, "b": 2.5})),
    "status": call("created", 1),
    "nothing taken": str(call("now")),
    "live": importlib.import_module("made.api.process.is_live").sync(client=client),
}
print(json.dumps(told))
