"""What a process answers while its functions load: the transports that are open then, and what they say."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
import pytest

from invoker.client import GraphPipe, GraphPipeError, SyncRiffClient
from invoker.tensors import Code
from tests.e2e.process import Process, started
from tests.e2e.test_lifecycle import free_port, is_taken

SLOW_START = """
import sys
import numpy as np
from numpy.typing import NDArray
from invoker import function

def load():
    sys.stderr.write("the hook runs\\n")
    with open("go") as go:  # a pipe: until the test writes to it
        go.read()

@function(init=load)
def double(x: NDArray[np.float32]) -> NDArray[np.float32]:
    \"\"\"Twice the input.\"\"\"
    return x * 2
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with a function that loads until something is written to a pipe."""
    (tmp_path / "slow.py").write_text(SLOW_START)
    os.mkfifo(tmp_path / "go")
    return tmp_path


def loading(process: Process) -> str:
    """The address of the HTTP transport of a process whose hook runs."""
    process.wait_for("the hook runs")
    found = re.search(r"loading: calls on http=(\S+)", process.wait_for("loading: "))
    assert found is not None
    return f"http://{found[1]}"


def go(place: Path) -> None:
    """Let the hook return."""
    (place / "go").write_text("on")


def refused(call: Callable[[], object]) -> GraphPipeError:
    """How a GraphPipe call failed."""
    with pytest.raises(GraphPipeError) as caught:
        call()
    return caught.value


def test_G092_G010_what_needs_no_function_is_answered_while_it_loads(place: Path) -> None:
    """Metadata and liveness are there, readiness says no, and calls are refused; then all is as ever."""
    port = free_port()
    with started("slow:double", cwd=place, env={"GRPC_PORT": str(port)}) as process:
        url = loading(process)
        assert httpx.get(f"{url}/livez").status_code == 200
        for path in ("/readyz", "/control/is_ready"):
            assert httpx.get(f"{url}{path}").status_code == 503
        assert httpx.get(f"{url}/control/is_alive").status_code == 200
        assert httpx.get(f"{url}/graphpipe").json()["Name"] == "double"
        answer = httpx.post(url, json=[1])
        assert (answer.status_code, "still loading" in answer.text) == (503, True)
        with GraphPipe(f"{url}/graphpipe") as model:
            assert model.metadata().description == "Twice the input."
            error = refused(lambda: model.infer(np.float32([1])))
            assert (error.code, error.http_status) == (Code.NOT_READY, 503)
            assert not is_taken(port), "R-014: the gRPC transport opens when the hook has succeeded"
            go(place)
            grpc, http = process.ready()
            assert f"http://{http}" == url
            assert model.infer(np.float32([1])).tolist() == [2]
        assert httpx.get(f"{url}/readyz").status_code == 200
        with SyncRiffClient(grpc) as client:
            assert [one.value for one in client.invoke([[[1.0]]])] == [[2.0]]


def test_G092_bare_sockets_answer_while_the_function_loads(place: Path) -> None:
    """Likewise."""
    path = place / "model.sock"
    with started("slow:double", "--graphpipe-unix", str(path), cwd=place) as process:
        loading(process)
        with GraphPipe(f"unix://{path}") as model:
            assert model.metadata().name == "double"
            assert refused(lambda: model.infer(np.float32([1]))).code == Code.NOT_READY
            go(place)
            process.ready()
            assert model.infer(np.float32([1])).tolist() == [2]


def test_H060_functions_are_told_of_while_they_load(place: Path) -> None:
    """With the transports that are open by then; the gRPC transport comes later, and with it another tag."""
    with started("slow:double", cwd=place) as process:
        url = loading(process)
        early = httpx.get(f"{url}/functions")
        assert [one["name"] for one in early.json()["functions"]] == ["double"]
        assert "/double" in httpx.get(f"{url}/openapi.json").json()["paths"]
        go(place)
        grpc, http = process.ready()
        late = httpx.get(f"{url}/functions", headers={"If-None-Match": early.headers["etag"]})
        assert {one["address"] for one in late.json()["protocols"]} == {grpc, http}
        assert {one["address"] for one in early.json()["protocols"]} <= {http}


def test_a_process_that_is_told_to_end_while_it_loads_closes_its_transports(place: Path) -> None:
    """At once, with exit code 0 or the hook's; nobody listens any more."""
    with started("slow:double", cwd=place) as process:
        port = int(loading(process).rpartition(":")[2])
        process.send(signal.SIGTERM)
        process.exit_code()
        assert not is_taken(port)


def test_workers_open_no_transport_before_they_are_ready(place: Path) -> None:
    """Another worker may be ready on the same ports, and its callers must not meet one that is not."""
    port = free_port()
    env = {"PORT": str(port), "GRPC_PORT": str(free_port())}
    with started("slow:double", "--workers", "2", cwd=place, env=env) as process:
        process.wait_for("the hook runs")
        assert not is_taken(port)
        assert "loading: " not in process.log
