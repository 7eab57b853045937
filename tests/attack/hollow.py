"""Arrays of very many rows without elements: 128 bytes that would become gigabytes of empty lists.

python -m tests.attack.hollow [http riff rows] [--seconds 5] [--tree DIR]
"""

from __future__ import annotations

import io
import time

import numpy as np

from tests.attack.decodes import over_grpc, over_http
from tests.attack.memory import Peak
from tests.attack.runner import MIB, Figures, Victim, main
from tests.protocols.graphpipe.asking import ask

FUNCTIONS = "tests.attack.functions"

_NPY = "application/x-npy"


def _file(rows: int) -> bytes:
    """As numpy writes it; made by hand, since there are no elements."""
    made = io.BytesIO()
    np.save(made, np.zeros((rows, 0)))
    return made.getvalue()


def _timed(target: Victim, send: str, body: bytes) -> Figures:
    began = time.monotonic()
    with Peak(target) as peak:
        if send == "http":
            status = over_http(target, body, _NPY, "twice", accept="application/json")
        elif send == "riff":
            status = over_grpc(target, body, _NPY, "twice", accept="application/json")
        else:
            status = over_http(target, body, "application/octet-stream", "row", path="/graphpipe/row")
    return {"status": status, "took s": time.monotonic() - began, "peak MiB": peak.bytes // MIB}


def http(target: Victim, _: float) -> Figures:
    """A file of numpy, answered as JSON."""
    return _timed(target, "http", _file(2**25))


def riff(target: Victim, _: float) -> Figures:
    """The same by gRPC."""
    return _timed(target, "riff", _file(2**25))


def rows(target: Victim, _: float) -> Figures:
    """A tensor for a function that is fed row by row."""
    return _timed(target, "rows", ask(np.zeros((2**40, 0))))


ATTACKS = {"http": http, "riff": riff, "rows": rows}

if __name__ == "__main__":
    main(ATTACKS, FUNCTIONS, env={"INVOKER_GRAPHPIPE_TIMEOUT_S": "10"})
