"""`invoker.protocols.web.openapi.document`: the whole document, and what real requests and responses make of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import jsonschema
import pytest
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from invoker.author.decorator import options_of
from invoker.author.prepare import prepare
from invoker.protocols.web.openapi import path_of
from tests.e2e import described_functions
from tests.protocols.web.openapi.made import CATALOGUE, catalogue, document
from tests.transports.served import Served

DOCUMENT = catalogue()
FUNCTIONS = [one for one in vars(described_functions).values() if options_of(one) is not None]
REGISTRY = Registry().with_resource("urn:doc", Resource(DOCUMENT, DRAFT202012))


def schemas(node: Any) -> Iterator[Any]:
    """Every schema of the document."""
    if isinstance(node, list):
        for one in node:
            yield from schemas(one)
    elif isinstance(node, dict):
        for name, one in node.items():
            if name in ("schema", "x-itemSchema"):
                yield one
            elif name == "schemas":
                yield from one.values()
            else:
                yield from schemas(one)


def operations() -> dict[str, dict[str, Any]]:
    """By their ids."""
    return {one["operationId"]: one for path in DOCUMENT["paths"].values() for one in path.values()}


def check(schema: dict[str, Any], value: Any) -> None:
    """Refuse a value that does not fit a schema of the document."""
    text = json.dumps(schema).replace('"#/components', '"urn:doc#/components')
    jsonschema.Draft202012Validator(json.loads(text), registry=REGISTRY).validate(value)


def test_H067_every_schema_is_one_and_every_reference_leads_somewhere() -> None:
    """All of it is JSON."""
    found = list(schemas(DOCUMENT))
    assert len(found) > 100
    for one in found:
        jsonschema.Draft202012Validator.check_schema(one)
    text = json.dumps(DOCUMENT, allow_nan=False)
    for kind, name in set(re.findall(r'"#/components/(\w+)/([^"]+)"', text)):
        assert name in DOCUMENT["components"][kind]
        assert re.fullmatch(r"[A-Za-z0-9._-]+", name)


def test_H067_the_frame_of_the_document() -> None:
    """OpenAPI 3.1, the version that the author says, and paths relative to where the document is."""
    assert DOCUMENT["openapi"] == "3.1.0"
    assert DOCUMENT["info"] == {"title": "invoker", "version": "1.2.3"}
    assert DOCUMENT["servers"] == [{"url": "."}]
    assert {tag for one in operations().values() for tag in one["tags"]} == {one["name"] for one in DOCUMENT["tags"]}
    assert document(lambda x: x)["info"]["version"] == "0"


def test_H067_each_function_has_a_path() -> None:
    """With POST, and with GET if it is safe; one whose path is another's has none. Ids are identifiers."""
    paths = DOCUMENT["paths"]
    names = [one.spec.name for one in prepare(CATALOGUE)]
    assert set(paths) == {path_of(name) for name in names} | {"/functions", "/livez", "/readyz", "/metrics"}
    assert paths["/square"].keys() == {"get", "post"}
    assert paths["/echo"].keys() == {"post"}
    assert paths["/metrics"].keys() == {"get"}
    assert paths[path_of("größe {x}")]["post"]["operationId"] == "gr_e_x"
    assert "{" not in "".join(paths)
    ids = list(operations())
    assert len(ids) == len([one for path in paths.values() for one in path])
    assert all(one.isidentifier() for one in ids)


def test_H067_words_are_those_of_the_docstring() -> None:
    """The first paragraph, and all of the prose where there is more."""
    square = operations()["square"]
    assert square["summary"] == "Square a number."
    assert square["description"] == "Square a number.\n\nThe result is exact."
    assert "description" not in operations()["gray"]


def test_H067_names_that_make_one_identifier_are_told_apart() -> None:
    """So are those of definitions."""

    def f(x: int) -> int:
        return x

    def g(x: str) -> str:
        return x

    f.__name__, g.__name__ = "a-b", "a.b"
    made = document(f, g)
    assert [made["paths"][path]["post"]["operationId"] for path in ("/a-b", "/a.b")] == ["a_b", "a_b_2"]
    assert {"a_b_input", "a_b_2_input"} <= made["components"]["schemas"].keys()


def test_H067_our_definitions_leave_the_authors_their_names() -> None:
    """A class `Error` keeps its name."""
    assert all(name.startswith("Invoker") for name in document(print_nothing)["components"]["schemas"])


def print_nothing() -> None: ...


CALLS: list[tuple[str, str, dict[str, Any]]] = [
    ("square", "application/json", {"json": {"x": 3}}),
    ("square", "application/json", {"json": 3}),
    ("square", "text/plain", {"content": b"3"}),
    ("square", "application/x-ndjson", {"content": b"3\n"}),
    ("count", "", {"params": {"n": "2"}, "headers": {"Accept": "application/x-ndjson"}}),
    ("echo", "application/json", {"json": {"words": "a", "prefix": "b", "color": "blue"}}),
    ("echo", "application/json", {"json": "a", "params": {"prefix": "b"}}),
    ("echo", "application/x-ndjson", {"content": b'"a"\n"b"\n', "headers": {"Accept": "application/x-ndjson"}}),
    ("echo", "text/plain", {"content": b"a", "headers": {"Accept": "text/event-stream"}}),
    ("repeat", "application/x-ndjson", {"content": b'{"words":"a"}\n{"counts":2}\n'}),
    ("repeat", "application/json", {"json": {"words": "a", "counts": 2}}),
    ("split", "application/json", {"json": {"xs": 3}, "headers": {"Accept": "application/x-ndjson"}}),
    ("split", "application/json", {"json": 4, "headers": {"Accept": "multipart/mixed"}}),
    ("store", "application/json", {"json": 4, "headers": {"Accept": "application/x-ndjson"}}),
    ("move", "application/json", {"json": {"point": {"x": 1}, "by": 2}}),
    ("move", "application/json", {"json": {"x": 1}, "params": {"by": "2"}}),
    ("prune", "application/json", {"json": {"name": "a", "children": [{"name": "b"}]}}),
    ("gray", "application/octet-stream", {"content": b"\x00"}),
    ("paint", "image/png", {"content": b"\x89"}),
    (
        "upload",
        "multipart/form-data",
        {"files": {"image": ("a.bin", b"\x00", "application/octet-stream"), "name": (None, "x")}},
    ),
    ("norm", "application/json", {"json": {"rows": [[1, 2]]}}),
    ("norm", "application/json", {"json": [[1, 2]]}),
    ("total", "application/json", {"json": {"xs": [1, 2], "when": "2026-01-02", "at": {"x": 1}}}),
    ("total", "application/json", {"json": [1], "params": {"tags": ["a", "b"], "at": '{"x": 1}'}}),
    ("named", "application/json", {"json": {"a": 1, "b": 2.5}}),
    ("many", "application/json", {"json": 3}),
    ("many", "application/json", {"json": {"xs": [3]}}),
    ("many", "multipart/form-data", {"files": {"xs": (None, "3")}}),
    ("anything", "application/json", {"json": [1, {"a": None}]}),
    ("scale", "application/json", {"json": {"a": 1.5}, "params": {"factor": "3"}}),
    ("created", "application/json", {"json": {"x": 1}}),
    ("now", "", {}),
    ("größe {x}", "application/json", {"json": {"x": 1}}),
]


@pytest.mark.parametrize(("name", "sent", "said"), CALLS, ids=lambda one: str(one)[:40])
async def test_H068_requests_as_the_document_says_are_answered_as_it_says(
    name: str, sent: str, said: dict[str, Any]
) -> None:
    """The media type of the body is listed, the value fits its schema, and so do those of the response."""
    operation = DOCUMENT["paths"][path_of(name)]["post"]
    body = operation.get("requestBody", {"content": {}})
    assert not sent or sent in body["content"]
    if "json" in said:
        check(body["content"][sent]["schema"], said["json"])
    if sent == "application/x-ndjson":
        for line in said["content"].splitlines():
            check(body["content"][sent]["x-itemSchema"], json.loads(line))
    listed = {one["name"] for one in operation.get("parameters", ())}
    assert set(said.get("params", ())) <= listed
    own = {"Content-Type": sent} if sent and not said.keys() & {"data", "files"} else {}
    async with Served.at(*FUNCTIONS) as served, served.client() as client:
        response = await client.post(path_of(name), **{**said, "headers": {**own, **said.get("headers", {})}})
    check_response(operation, response)


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("square", "x=3"),
        ("count", "n=2"),
        ("total", "xs=1&xs=2&when=2026-01-02&tags=a&tags=b&at=%7B%22x%22:1%7D"),
    ],
)
async def test_H068_GET_takes_what_the_document_says(name: str, query: str) -> None:
    """Its parameters, of which those without default are required."""
    operation = DOCUMENT["paths"][f"/{name}"]["get"]
    assert "requestBody" not in operation
    listed = {one["name"]: one.get("required", False) for one in operation["parameters"]}
    assert {one.partition("=")[0] for one in query.split("&")} <= listed.keys()
    async with Served.at(*FUNCTIONS) as served, served.client() as client:
        accept = {"Accept": "application/x-ndjson"} if name == "count" else {}
        check_response(operation, await client.get(f"/{name}?{query}", headers=accept))
        if any(listed.values()):
            assert (await client.get(f"/{name}")).status_code == 400


@pytest.mark.parametrize("accept", ["*/*", "application/json"])
async def test_H068_errors_are_as_the_document_says(accept: str) -> None:
    """Whatever the client likes."""
    operation = DOCUMENT["paths"]["/square"]["post"]
    async with Served.at(*FUNCTIONS) as served, served.client() as client:
        for body in (b"{}", b'"a"', b'{"x": 100000}'):
            headers = {"Content-Type": "application/json", "Accept": accept}
            response = await client.post("/square", content=body, headers=headers)
            assert response.status_code == 400
            check_response(operation, response)


def check_response(operation: dict[str, Any], response: httpx.Response) -> None:
    """Its status, its media type and its content are those of the document."""
    responses = operation["responses"]
    status = str(response.status_code)
    told = responses.get(status) or responses.get(f"{status[0]}XX") or responses["default"]
    if "$ref" in told:
        told = DOCUMENT["components"]["responses"][told["$ref"].rpartition("/")[2]]
    essence = response.headers["content-type"].partition(";")[0]
    content = told["content"][essence]
    assert status[0] == "2" or told is not responses.get("200"), response.text
    if essence == "application/json":
        check(content["schema"], response.json())
    elif essence == "application/x-ndjson":
        for line in response.text.splitlines():
            check(content.get("x-itemSchema", {}), json.loads(line))
    elif essence == "text/event-stream":
        for data in re.findall(r"^id: \d+\ndata: (.*)$", response.text, re.MULTILINE):
            check(content["x-itemSchema"], json.loads(data))
    assert status[0] == "2" or status == "400", response.text
