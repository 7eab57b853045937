"""`buf curl`: a Go stack that learns the service from server reflection alone."""

from __future__ import annotations

import base64
import json
import subprocess
from typing import Any

import pytest

from tests.interop.tools import BUF, data, run, start
from tests.serving import Served

pytestmark = pytest.mark.timeout(30)


def curl(
    address: str, method: str = "", *signals: Any, flags: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Call a method with JSON documents on stdin."""
    flags = ("--http2-prior-knowledge", "--protocol", "grpc", *flags)
    lines = "\n".join(json.dumps(signal) for signal in signals)
    wanted = ("-d", "@-") if signals else ()
    return run(BUF, "curl", *flags, *wanted, f"http://{address}{method}", stdin=lines)


def documents(text: str) -> list[dict[str, Any]]:
    """The JSON documents of an output, one after the other."""
    found, decoder, text = [], json.JSONDecoder(), text.strip()
    while text:
        document, end = decoder.raw_decode(text)
        found.append(document)
        text = text[end:].lstrip()
    return found


def test_R015_reflection_lists_the_services(square: Served) -> None:
    """Riff, health and reflection itself are listed."""
    done = curl(square.grpc, flags=("--list-services",))
    assert {"streaming.Riff", "grpc.health.v1.Health"} <= set(done.stdout.split()), done.stderr


@pytest.mark.parametrize("version", ["grpc-v1", "grpc-v1alpha"])
def test_H100_both_versions_of_reflection_are_served(square: Served, version: str) -> None:
    """A caller that asks for one version alone lists each service once, and calls by its descriptors."""
    flags = ("--reflect-protocol", version)
    listed = curl(square.grpc, flags=("--list-services", *flags)).stdout.split()
    assert {"streaming.Riff", "grpc.reflection.v1.ServerReflection"} <= set(listed)
    assert len(listed) == len(set(listed))
    done = curl(square.grpc, "/streaming.Riff/Invoke", start("application/json"), data("7"), flags=flags)
    assert [base64.b64decode(one["data"]["payload"]) for one in documents(done.stdout)] == [b"49"], done.stderr


def test_R007_the_method_is_called_by_reflection(square: Served) -> None:
    """A caller with no proto file invokes /streaming.Riff/Invoke; payloads are base64 in its JSON."""
    done = curl(square.grpc, "/streaming.Riff/Invoke", start("application/json"), data("7"), data("8"))
    assert done.returncode == 0, done.stderr
    frames = [document["data"] for document in documents(done.stdout)]
    assert [base64.b64decode(frame["payload"]) for frame in frames] == [b"49", b"64"]
    assert {frame["contentType"] for frame in frames} == {"application/json"}


def test_R062_two_inputs_by_reflection(repeat: Served) -> None:
    """A word three times."""
    signals = (data("ho", media_type="text/plain"), data("3", index=1))
    done = curl(repeat.grpc, "/streaming.Riff/Invoke", start("text/plain"), *signals)
    assert [base64.b64decode(one["data"]["payload"]) for one in documents(done.stdout)] == [b"ho"] * 3, done.stderr


def test_R100_the_status_is_the_exit_code(square: Served) -> None:
    """INVALID_ARGUMENT is 3, which buf shifts by three bits; the detail is printed."""
    done = curl(square.grpc, "/streaming.Riff/Invoke", start("text/zglorbf"))
    assert done.returncode == 3 << 3
    assert "Invoker: Not Acceptable: Unsupported content-type 'text/zglorbf' for output #0" in done.stderr


def test_R015_health_is_serving(square: Served) -> None:
    """The whole server and the Riff service are healthy."""
    for service in ("", "streaming.Riff"):
        done = curl(square.grpc, "/grpc.health.v1.Health/Check", {"service": service})
        assert documents(done.stdout) == [{"status": "SERVING"}], done.stderr
