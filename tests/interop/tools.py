"""The foreign clients as `make interop` installs them, and the frames they send."""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conftest import SLOW
from tests.serving import ROOT

MODULES = ROOT / ".interop/node_modules"
# The program itself, which a script of Node starts otherwise.
BUF = next((MODULES / "@bufbuild").glob("buf-*/bin/buf"), MODULES / ".bin/buf")
PROTO = ROOT / "proto/riff/riff-rpc.proto"
CLIENT = Path(__file__).parent / "client.js"
LIMIT_S = 10.0


def run(*command: str | Path, stdin: str = "", limit_s: float = LIMIT_S) -> subprocess.CompletedProcess[str]:
    """Run a client to its end."""
    return subprocess.run(
        [str(one) for one in command],
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        timeout=limit_s * SLOW,
        env=_environment(),
        check=False,
    )


def _environment() -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return {**env, "NODE_PATH": str(MODULES), "HOME": str(MODULES.parent), "PYTHONPATH": str(ROOT)}


_running: dict[Path, subprocess.Popen[str]] = {}
"""Programs that answer lines, by their files."""


def answered(program: Path, question: Mapping[str, Any], *, limit_s: float = LIMIT_S) -> Any:
    """What a program of Node answers, see lines.js; it runs on for the next who asks, until `leave`.

    Raises:
        RuntimeError: The program told of an error, or has ended.
        TimeoutError: It has not answered in time, and was killed.
    """
    process = _running.get(program)
    if process is None or process.poll() is not None:
        command = ["node", str(program)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        process = _running[program] = subprocess.Popen(command, env=_environment(), encoding="utf-8", **pipes)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(question) + "\n")
    process.stdin.flush()
    if not select.select([process.stdout], [], [], limit_s * SLOW)[0]:
        _end(program)
        raise TimeoutError(f"{program.name} does not answer {question}")
    if not (line := process.stdout.readline()):
        raise RuntimeError(f"{program.name} has ended with {_end(program)}")
    told = json.loads(line)
    if "failure" in told:
        raise RuntimeError(told["failure"])
    return told["answer"]


def leave() -> None:
    """End the programs that answer."""
    for program in list(_running):
        process = _running[program]
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(LIMIT_S * SLOW)
        finally:
            _end(program)


def _end(program: Path) -> int:
    process = _running.pop(program)
    process.kill()
    for one in (process.stdin, process.stdout):
        assert one is not None
        one.close()
    return process.wait()


@dataclass(frozen=True)
class Account:
    """What the Node client saw: frames with their payloads as bytes, the status, and the order of events."""

    frames: list[dict[str, Any]]
    code: int
    details: str
    events: list[str]

    @property
    def payloads(self) -> list[bytes]:
        """Payloads of the frames, in order."""
        return [frame["payload"] for frame in self.frames]


def node(address: str, *signals: dict[str, Any], function: str = "", **plan: Any) -> Account:
    """Send signals with the Node client, and give its account."""
    plan |= {"address": address, "proto": str(PROTO), "signals": signals}
    if function:
        plan["metadata"] = {"invoker-function": function}
    account = answered(CLIENT, plan)
    frames = [{**frame, "payload": base64.b64decode(frame["payload"])} for frame in account["frames"]]
    return Account(frames, account["code"], account["details"], account["events"])


def start(*accepts: str, inputs: tuple[str, ...] = (), outputs: tuple[str, ...] = ()) -> dict[str, Any]:
    """A StartFrame's signal."""
    return {"start": {"expectedContentTypes": accepts, "inputNames": inputs, "outputNames": outputs}}


def data(
    payload: str | bytes, *, index: int = 0, media_type: str = "application/json", **headers: str
) -> dict[str, Any]:
    """An InputFrame's signal."""
    encoded = payload.encode() if isinstance(payload, str) else payload
    frame = {"payload": base64.b64encode(encoded).decode(), "contentType": media_type, "headers": headers}
    return {"data": {**frame, "argIndex": index}}
