"""Clients of Connect and gRPC-Web that nobody here wrote: buf, and @connectrpc with generated code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from invoker.cli.main import main
from tests.interop.test_buf import documents
from tests.interop.test_typed import CALLS, SERVICE, in_order
from tests.interop.tools import BUF, MODULES, answered, run
from tests.serving import Served, serving

pytestmark = pytest.mark.timeout(30)

ENTRYPOINT = "tests.protocols.typed.kitchen"


@pytest.fixture(scope="module")
def kitchen() -> Iterator[Served]:
    """Functions with every kind of annotation."""
    with serving(ENTRYPOINT) as served:
        yield served


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with their .proto file, and what protoc-gen-es makes of it."""
    folder = tmp_path_factory.mktemp("es")
    assert main(["proto", ENTRYPOINT, "--out", str(folder / "proto")]) == 0
    plugin = {"local": str(MODULES / ".bin/protoc-gen-es"), "out": "gen", "opt": ["target=js", "import_extension=js"]}
    (folder / "buf.gen.yaml").write_text(json.dumps({"version": "v2", "plugins": [plugin]}))
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "node_modules").symlink_to(MODULES)
    done = run(BUF, "generate", folder / "proto", "--template", folder / "buf.gen.yaml", "--output", folder)
    assert done.returncode == 0, done.stderr
    return folder


def connect(served: Served, folder: Path, transport: str, method: str, *requests: Any, **plan: Any) -> dict[str, Any]:
    """What a client of @connectrpc got."""
    name = method[0].lower() + method[1:]
    file = str(folder / "gen/tests/protocols/typed/kitchen/kitchen_pb.js")
    address = served.grpc if transport == "grpc" else served.http
    plan |= {"transport": transport, "address": address, "file": file, "service": "KitchenService", "method": name}
    account: dict[str, Any] = answered(Path(__file__).parent / "connect.mjs", plan | {"requests": requests})
    return account


@pytest.mark.parametrize("transport", ["connect", "connect-json", "grpc-web", "grpc", "web-connect", "web-grpc"])
@pytest.mark.parametrize("method", ["Point", "Many", "Spell", "Total", "Repeat"])
def test_H110_H112_generated_clients_call(kitchen: Served, made: Path, transport: str, method: str) -> None:
    """Of Node, and of browsers, which send no streams."""
    ((_, requests, responses),) = (one for one in CALLS if one[0] == method)
    if len(requests) > 1 and transport.startswith("web"):
        pytest.skip("fetch() sends no stream over HTTP/1.1")
    account = connect(kitchen, made, transport, method, *requests)
    assert (account["code"], account["message"]) == ("ok", "")
    assert in_order(account["responses"]) == in_order(responses)


@pytest.mark.parametrize("transport", ["connect-gzip", "grpc-web-gzip"])
@pytest.mark.parametrize("method", ["Point", "Spell", "Repeat"])
def test_H205_clients_pack_their_messages(kitchen: Served, made: Path, transport: str, method: str) -> None:
    """Of unary methods and of streams."""
    ((_, requests, responses),) = (one for one in CALLS if one[0] == method)
    account = connect(kitchen, made, transport, method, *requests)
    assert (account["code"], account["message"]) == ("ok", "")
    assert in_order(account["responses"]) == in_order(responses)


def test_H110_a_conversation_over_http_2(kitchen: Served, made: Path) -> None:
    """Each request is answered before the next one leaves."""
    requests = [{"values": "a", "prefix": "!"}, {"values": "b"}]
    for transport in ("connect", "grpc"):
        account = connect(kitchen, made, transport, "Echo", *requests, httpVersion="2", inTurns=True)
        assert account["responses"] == [{"out": "!a"}, {"out": "!b"}]


@pytest.mark.parametrize("transport", ["connect", "connect-json", "grpc-web", "grpc", "web-connect", "web-grpc"])
def test_H108_H111_errors_have_the_code_and_the_text(kitchen: Served, made: Path, transport: str) -> None:
    """As the clients' own error says them."""
    account = connect(kitchen, made, transport, "Model", {"m": {"size": 0}})
    assert account["code"] == "InvalidArgument"
    assert "parameter 'm': protobuf cannot become Model: size" in account["message"]


@pytest.mark.parametrize("transport", ["connect", "grpc-web"])
def test_H114_deadlines_are_kept(kitchen: Served, made: Path, transport: str) -> None:
    """The client's own timer rings as well; either says the same."""
    account = connect(kitchen, made, transport, "Doze", {"seconds": 30}, timeoutMs=300)
    assert account["code"] == "DeadlineExceeded"


def test_H113_a_safe_function_is_asked_by_get(kitchen: Served, made: Path) -> None:
    """The generated client does so where the method says that it has no side effects."""
    account = connect(kitchen, made, "connect-get", "Doze", {"seconds": 0})
    assert account["responses"] == [{"out": 0}] or account["responses"] == [{}]


@pytest.mark.parametrize("flags", [(), ("--http2-prior-knowledge",)])
@pytest.mark.parametrize("protocol", ["connect", "grpcweb"])
@pytest.mark.parametrize("method", ["Scalars", "Spell", "Total", "Split"])
def test_H110_H112_buf_calls(kitchen: Served, made: Path, protocol: str, method: str, flags: tuple[str, ...]) -> None:
    """A Go stack, over both versions of HTTP."""
    ((_, requests, responses),) = (one for one in CALLS if one[0] == method)
    lines = "\n".join(json.dumps(one) for one in requests)
    if method == "Split" and not flags:
        pytest.skip("buf takes a conversation for one of HTTP/2")
    url = f"http://{kitchen.http}/{SERVICE}/{method}"
    schema = made / "proto/tests/protocols/typed/kitchen/kitchen.proto"
    done = run(BUF, "curl", "--schema", schema, "--protocol", protocol, *flags, "-d", "@-", url, stdin=lines)
    assert done.returncode == 0, done.stderr
    assert in_order(documents(done.stdout)) == in_order(responses)
