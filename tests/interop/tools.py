"""The foreign clients as `make interop` installs them, and the frames they send."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conftest import SLOW
from tests.serving import ROOT

MODULES = ROOT / ".interop/node_modules"
BUF = MODULES / ".bin/buf"
PROTO = ROOT / "proto/riff/riff-rpc.proto"
CLIENT = Path(__file__).parent / "client.js"
LIMIT_S = 10.0


def run(*command: str | Path, stdin: str = "", limit_s: float = LIMIT_S) -> subprocess.CompletedProcess[str]:
    """Run a client to its end."""
    env = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return subprocess.run(
        [str(one) for one in command],
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        timeout=limit_s * SLOW,
        env={**env, "NODE_PATH": str(MODULES), "HOME": str(MODULES.parent), "PYTHONPATH": str(ROOT)},
        check=False,
    )


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
    done = run("node", CLIENT, stdin=json.dumps(plan))
    assert done.returncode == 0, done.stderr
    account = json.loads(done.stdout)
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
