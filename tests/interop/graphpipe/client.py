"""A client on the package `graphpipe`: a question a line on stdin, its answer a line on stdout, both JSON.

Questions are ``{"call": NAME, "uri": URI, ...}``. ``execute`` has ``input`` and perhaps ``input_name`` and
``output_name``; ``execute_multi`` has ``inputs``, ``input_names``, ``output_names`` and ``config``; ``metadata`` has no
more, and neither have the six ``get_...`` of the package. ``is_kept`` keeps one connection for all that have it. The
answer is ``{"value": ...}`` or ``{"error": CLASS, "text": TEXT}``; ``connections`` says how many were made so far, of
those that are kept.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import flatbuffers
import numpy as np
import requests
from graphpipe import remote
from values import packed, unpacked

KEPT = requests.Session()


def execute(question: dict[str, Any]) -> Any:
    """One tensor; what comes is one, or several."""
    names = (question.get("input_name"), question.get("output_name"))
    got = remote.execute(question["uri"], unpacked(question["input"]), *names)
    return [packed(one) for one in got] if isinstance(got, list) else packed(got)


def execute_multi(question: dict[str, Any]) -> Any:
    """Several tensors each way."""
    inputs = [unpacked(one) for one in question["inputs"]]
    names = (question.get("input_names"), question.get("output_names"))
    return [packed(one) for one in remote.execute_multi(question["uri"], inputs, *names, question.get("config"))]


def metadata(question: dict[str, Any]) -> Any:
    """All that the object of the package gives."""
    found = remote.metadata(question["uri"])
    model = {name: _text(getattr(found, name)()) for name in ("Name", "Version", "Server", "Description")}
    inputs = [_port(found.Inputs(j)) for j in range(found.InputsLength())]
    outputs = [_port(found.Outputs(j)) for j in range(found.OutputsLength())]
    return {**model, "Inputs": inputs, "Outputs": outputs}


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """Do one call; the package says no by exceptions of many classes."""
    # The package calls `post` of the module; a session has the same one, and keeps its connection.
    remote.requests = KEPT if question.get("is_kept") else requests
    call = question["call"]
    try:
        if call in ("execute", "execute_multi", "metadata"):
            value: Any = globals()[call](question)
        else:
            value = [_plain(one) for one in getattr(remote, call)(question["uri"])]
    except Exception as error:
        return {"error": type(error).__name__, "text": str(error)}
    return {"value": value, "connections": _connections()}


def main() -> None:
    """Say which release of the reader is at work, and answer until stdin ends."""
    print(json.dumps({"flatbuffers": getattr(flatbuffers, "__version__", "1.9"), "numpy": np.__version__}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


def _port(port: Any) -> dict[str, Any]:
    shape = [port.Shape(j) for j in range(port.ShapeLength())]
    return {"Name": _text(port.Name()), "Description": _text(port.Description()), "Shape": shape, "Type": port.Type()}


def _text(raw: bytes | None) -> str:
    return (raw or b"").decode()


def _plain(one: Any) -> Any:
    return one.str if isinstance(one, np.dtype) else one


def _connections() -> int:
    pools = KEPT.get_adapter("http://").poolmanager.pools
    return sum(pools[key].num_connections for key in pools.keys())  # noqa: SIM118 - it is no dict


if __name__ == "__main__":
    main()
