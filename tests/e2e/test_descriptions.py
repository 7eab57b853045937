"""What a real process tells of its functions over HTTP."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

import httpx
import pytest

from tests.serving import Served, serving

FUNCTIONS = "tests.e2e.described_functions"


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """Functions of every shape."""
    with serving(FUNCTIONS) as process:
        yield process


def get(served: Served, path: str, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.get(f"http://{served.http}{path}", headers=named, trust_env=False)


def test_H060_protocols_have_the_addresses_of_their_transports(served: Served) -> None:
    """Those that are open, as the ready line has them."""
    told = {one["name"]: one["address"] for one in get(served, "/functions").json()["protocols"]}
    assert told["riff"] == served.grpc
    assert told["http"] == served.http


def test_H060_a_function_behind_a_page_has_no_path(served: Served) -> None:
    """One that is named like a page of the process; it is not in the OpenAPI document either."""
    functions = {one["name"]: one for one in get(served, "/functions").json()["functions"]}
    assert functions["metrics"]["path"] is None
    assert functions["square"]["isSafe"]
    assert functions["square"]["path"] == "/square"
    called = httpx.post(f"http://{served.http}{functions['größe {x}']['path']}", json={"x": 3}, trust_env=False)
    assert (called.status_code, called.json()) == (200, 3)


@pytest.mark.parametrize("path", ["/functions", "/openapi.json"])
def test_H061_a_packed_description_is_known_by_its_weak_tag(served: Served, path: str) -> None:
    """As browsers and proxies have it; the plain one is known by the other."""
    packed = get(served, path, Accept_Encoding="gzip")
    plain = get(served, path, Accept_Encoding="identity")
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.json() == plain.json()
    assert int(packed.headers["content-length"]) < len(gzip.compress(plain.content, 1)) + 500
    for tag in (packed.headers["etag"], plain.headers["etag"]):
        known = get(served, path, If_None_Match=tag)
        assert (known.status_code, known.content) == (304, b"")


def test_H062_without_reflection_the_paths_are_as_any_other() -> None:
    """No function has them, so they are not there."""
    with serving(FUNCTIONS, "--no-reflection") as served:
        for path in ("/functions", "/openapi.json"):
            assert get(served, path).status_code == 404
        assert httpx.post(f"http://{served.http}/square", json=3, trust_env=False).json() == 9


def test_H061_all_workers_tell_the_same() -> None:
    """So a client that meets another worker need not load it again."""
    with serving(FUNCTIONS, "--workers", "2") as served:
        tags = {get(served, "/openapi.json").headers["etag"] for _ in range(12)}
        assert len(tags) == 1
