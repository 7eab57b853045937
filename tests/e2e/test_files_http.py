"""Files of forms, lists of them, and values that are not there, in the bytes that browsers and curl send."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator

import pytest

from tests.conftest import SLOW
from tests.e2e.test_options_http import FORM, JSON, OCTETS, ask
from tests.serving import Served, serving

pytestmark = pytest.mark.timeout(20)

FILES = """
from collections.abc import Iterator
from invoker import function

@function
def sizes(files: list[bytes]) -> str: return repr(files)
@function
def tagged(x: int, files: tuple[bytes, ...] = (b"none",), texts: list[str] = ["none"], counts: list[int] = [0]) -> str:
    return f"{files} {texts} {counts}"
@function
def each(xs: Iterator[int], files: list[bytes] = [], texts: list[str] = ["none"]) -> Iterator[str]:
    for x in xs: yield f"{x} {files} {texts}"
@function
def one(data: bytes) -> str: return repr(data)
@function
def other(data: bytes = b"none") -> str: return repr(data)
@function
def text(data: str = "none") -> str: return data
@function
def total(*xs: int) -> int: return sum(xs)
@function
def cat(*xs: Iterator[str], sep: str = ",") -> Iterator[str]: yield sep.join("".join(x) for x in xs) or "nothing"
@function
def joined(*data: bytes) -> str: return repr(data)
"""


@pytest.fixture(scope="module")
def uploads(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Functions of files."""
    module = tmp_path_factory.mktemp("uploads") / "uploads.py"
    module.write_text(FILES)
    with serving(str(module)) as served:
        yield served


def parts(*sent: tuple[str, str | None, str, str]) -> tuple[bytes, str]:
    """A form as browsers send it: names, file names, media types and contents."""
    lines = []
    for name, file, type_, content in sent:
        head = f'Content-Disposition: form-data; name="{name}"' + ("" if file is None else f'; filename="{file}"')
        lines.append(f"--xyz\r\n{head}\r\n" + (f"Content-Type: {type_}\r\n" if type_ else "") + f"\r\n{content}\r\n")
    return ("".join(lines) + "--xyz--\r\n").encode(), "multipart/form-data; boundary=xyz"


NOTHING = ("", OCTETS, "")
"""What browsers say of a file input in which nothing was chosen."""


@pytest.mark.parametrize("type_", [OCTETS, "text/plain", "image/png", "application/json", "text/csv"])
def test_H234_H235_files_of_one_name_are_a_list(uploads, type_):
    """Several, one, and none, which is no value; of any media type where they are bytes."""
    for names in ([], ["a"], ["a", "b"], ["[", "]"]):
        sent = [("files", f"{one}.x", type_, one) for one in names]
        expected = [one.encode() for one in names]
        if names:
            assert ask(uploads, "sizes", *parts(*sent)) == (200, repr(expected))
        for spare in ([], [("files", *NOTHING)]):
            assert ask(uploads, "tagged", *parts(("x", None, "", "1"), *sent, *spare)) == (
                200, f"{tuple(expected) or (b'none',)} ['none'] [0]",
            )  # fmt: skip
    status, told = ask(uploads, "sizes", *parts(("files", *NOTHING)))
    assert (status, "needs its input 'files', which is not given" in told) == (400, True), told


def test_H235_parts_of_one_name_are_a_list_of_what_they_hold(uploads):
    """Texts of fields and files are texts, numbers are read; a file that is no text is refused with its parameter."""
    x = ("x", None, "", "1")
    for file in (None, "a.txt"):
        type_ = "text/plain" if file else ""
        for texts in (["a"], ["a", "b"], ['"a"', "ü"]):
            sent = [("texts", file, type_, one) for one in texts]
            assert ask(uploads, "tagged", *parts(x, *sent)) == (200, f"{(b'none',)} {texts} [0]")
        sent = [("counts", file, type_, one) for one in ("1", "2")]
        assert ask(uploads, "tagged", *parts(x, *sent)) == (200, f"{(b'none',)} ['none'] [1, 2]")
    assert ask(uploads, "tagged", *parts(x, ("counts", None, JSON, "[1, 2]")))[1].endswith("[1, 2]")
    assert ask(uploads, "tagged", *parts(x, ("texts", *NOTHING))) == (200, f"{(b'none',)} ['none'] [0]")
    body, type_ = parts(x, ("texts", "a.bin", OCTETS, "\u00ff"))
    status, told = ask(uploads, "tagged", body.replace("\u00ff".encode(), b"\xff"), type_)
    assert (status, "parameter 'texts'" in told) == (400, True), told


def test_H235_lists_of_bytes_come_by_other_forms_and_queries_too(uploads):
    """Each text is an item."""
    assert ask(uploads, "sizes", b"files=a&files=b%20c", FORM) == (200, "[b'a', b'b c']")
    assert ask(uploads, "sizes", None, "", "files=a&files=b") == (200, "[b'a', b'b']")
    assert ask(uploads, "sizes", b'{"files": ["YQ=="]}', JSON) == (200, "[b'a']")


def test_H235_parts_that_follow_each_other_are_a_list_where_a_stream_is_asked_for(uploads):
    """Before the first item."""
    connection = http.client.HTTPConnection(uploads.http, timeout=10 * SLOW)
    body, type_ = parts(
        ("texts", None, "", "a"), ("texts", None, "", "b"), ("files", "a", OCTETS, "c"), ("files", *NOTHING),
        ("files", "b", OCTETS, "d"), ("xs", None, "", "1"), ("xs", None, "", "2"),
    )  # fmt: skip
    connection.request("POST", "/each", body, {"Content-Type": type_, "Accept": "application/x-ndjson"})
    lines = [json.loads(line) for line in connection.getresponse().read().splitlines()]
    connection.close()
    assert lines == ["1 [b'c', b'd'] ['a', 'b']", "2 [b'c', b'd'] ['a', 'b']"]


@pytest.mark.parametrize("length", ["Content-Length: 0\r\n", "Transfer-Encoding: chunked\r\n", ""])
def test_R143_a_body_that_is_announced_is_a_value_of_bytes(uploads, length):
    """Without a Content-Type, the empty one, too; no body is no value, and neither is for a text."""
    tail = "0\r\n\r\n" if "chunked" in length else ""
    expected = {"one": "b''" if length else 400, "other": "b''" if length else "b'none'", "text": "none"}
    for name, value in expected.items():
        host, port = uploads.http.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=10 * SLOW) as wire:
            head = f"POST /{name} HTTP/1.1\r\nHost: localhost\r\nAccept: text/plain\r\nConnection: close\r\n{length}"
            wire.sendall(f"{head}\r\n{tail}".encode())
            answer = b"".join(iter(lambda: wire.recv(1 << 16), b"")).decode()
        assert answer.split(" ")[1] == ("400" if value == 400 else "200"), answer
        if value != 400:
            assert answer.endswith(str(value)), answer


def test_H236_no_value_for_a_variadic_parameter_calls_without_it(uploads):
    """However nothing is said: the function is called once."""
    for body, type_ in ((None, ""), (b"{}", JSON), (b'{"xs": []}', JSON), parts(), parts(("xs", *NOTHING))):
        assert ask(uploads, "total", body, type_) == (200, "0")
    for body, type_ in ((None, ""), (b"{}", JSON), parts()):
        assert ask(uploads, "cat", body, type_) == (200, "nothing")
        assert ask(uploads, "joined", body, type_) == (200, "()" if type_ != JSON else "(b'{}',)")
        assert ask(uploads, "cat", body, type_, "sep=x") == (200, "nothing")
