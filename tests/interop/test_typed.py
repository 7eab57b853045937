"""Foreign clients see functions as typed methods: buf by reflection, grpc-js by the printed .proto file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from invoker.cli.main import main
from tests.interop.test_buf import curl, documents
from tests.interop.tools import answered, run
from tests.serving import Served, serving

pytestmark = pytest.mark.timeout(30)

SERVICE = "tests.protocols.typed.kitchen.KitchenService"

CALLS: list[tuple[str, list[dict[str, Any]], list[dict[str, Any]]]] = [
    ("Scalars", [{"i": 3, "f": 1.5, "s": "x", "t": True}], [{"out": "3 1.5 x b'' True"}]),
    ("Point", [{"p": {"x": 1}, "colour": "COLOUR_RED"}], [{"out": {"x": 2, "y": 2.5, "tags": ["RED", "LARGE"]}}]),
    ("Union", [{"value": {"int64_list": {"items": [1, 2]}}}], [{"out": {"int64_list": {"items": [1, 2]}}}]),
    ("Many", [{"first": 1, "rest": [2, 300], "scale": 2}], [{"out": 606}]),
    ("Named", [{"a": 1, "more": {"b": 2, "c": 300}}], [{"out": 303}]),
    ("Spell", [{"word": "ab"}], [{"out": "a"}, {"out": "b"}]),
    ("Source", [{}], [{"out": 0}, {"out": 1}, {"out": 2}]),
    ("Total", [{"numbers": 1}, {"numbers": 2.5}], [{"out": 3.5}]),
    ("Mean", [{"numbers": 1}, {"numbers": 2}], [{"out": 1}, {"out": 1.5}]),
    ("Repeat", [{"words": "a"}, {"counts": 2}], [{"out": "a"}, {"out": "a"}]),
    ("Split", [{"xs": 1}, {"xs": 2}], [{"even": 2}, {"odd": {"items": [1]}}]),
    ("Top", [{"items": {"items": [4]}}, {"k": 1}], [{"out": 4}]),
    ("Echo", [{"values": "a", "prefix": "!"}], [{"out": "!a"}]),
]


@pytest.fixture(scope="module")
def kitchen() -> Iterator[Served]:
    """Functions with every kind of annotation."""
    with serving("tests.protocols.typed.kitchen") as served:
        yield served


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where their .proto file is."""
    found = tmp_path_factory.mktemp("proto")
    assert main(["proto", "tests.protocols.typed.kitchen", "--out", str(found)]) == 0
    return found


def in_order(responses: list[Any]) -> list[Any]:
    """Responses as tests compare them: those of one output come in order, those of several side by side."""
    made = [told(one) for one in responses]
    return sorted(made, key=sorted) if any("even" in one for one in made) else made


def told(value: Any) -> Any:
    """JSON of protobuf with its 64-bit integers as numbers, and without zeros."""
    if isinstance(value, dict):
        return {_snake(name): made for name, one in value.items() if (made := told(one)) not in (0, "", [])}
    if isinstance(value, list):
        return [told(one) for one in value]
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def _snake(name: str) -> str:
    return "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in name)


@pytest.mark.parametrize("version", ["grpc-v1", "grpc-v1alpha"])
@pytest.mark.parametrize(("method", "requests", "responses"), CALLS)
def test_H106_buf_calls_by_reflection(
    kitchen: Served, method: str, requests: list[Any], responses: list[Any], version: str
) -> None:
    """It knows nothing but the address."""
    if version == "grpc-v1alpha" and method not in ("Point", "Split"):
        pytest.skip("two methods tell that the versions are alike")
    done = curl(kitchen.grpc, f"/{SERVICE}/{method}", *requests, flags=("--reflect-protocol", version))
    assert done.returncode == 0, done.stderr
    assert in_order(documents(done.stdout)) == in_order(responses)


@pytest.mark.parametrize(("method", "requests", "responses"), CALLS)
def test_H106_grpc_js_calls_by_the_printed_file(
    kitchen: Served, folder: Path, method: str, requests: list[Any], responses: list[Any]
) -> None:
    """A client of another make, with the file of `invoker proto` alone."""
    plan = {"address": kitchen.grpc, "folder": str(folder), "service": SERVICE, "method": method, "requests": requests}
    plan["file"] = "tests/protocols/typed/kitchen/kitchen.proto"
    answer = answered(Path(__file__).parent / "typed.js", plan)
    assert (answer["code"], answer["details"]) == (0, "")
    shown = [
        {name: one for name, one in each.items() if name not in ("output", "kind")} for each in answer["responses"]
    ]
    assert in_order([_plain(one) for one in shown]) == in_order(responses)


def _plain(value: Any) -> Any:
    """Without the names of oneofs, which this client adds."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items() if name != "kind" and not name.startswith("_")}
    return value


_ASK = """
const grpc = require("@grpc/grpc-js");
const client = new grpc.Client(process.argv[1], grpc.credentials.createInsecure());
const asIs = (bytes) => bytes;
const call = client.makeBidiStreamRequest("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", asIs, asIs);
call.on("data", (bytes) => { process.stdout.write(bytes.toString("latin1")); call.end(); });
call.on("status", (status) => { process.stdout.write(`status ${status.code}`); client.close(); });
call.write(Buffer.from([0x3a, 0x00]));
"""
"""Asks for the list of services, whose request is field 7, empty."""


def test_H100_grpc_js_asks_version_1(kitchen: Served) -> None:
    """The list has the typed service."""
    done = run("node", "-e", _ASK, kitchen.grpc)
    assert SERVICE in done.stdout, done.stderr
    assert done.stdout.endswith("status 0")


def test_H108_a_bad_input_is_an_invalid_argument(kitchen: Served) -> None:
    """buf shows the name of the parameter."""
    done = curl(kitchen.grpc, f"/{SERVICE}/Model", {"m": {"size": 0}})
    assert done.returncode == 3 << 3
    assert "parameter 'm': protobuf cannot become Model: size: Input should be greater than 0" in done.stderr
