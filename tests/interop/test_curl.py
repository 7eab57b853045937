"""`curl` on the HTTP transport, by HTTP/1.1 and by HTTP/2 with prior knowledge, on the same port."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.interop.tools import run
from tests.serving import Served, serving

pytestmark = pytest.mark.timeout(30)

SHOWN = "%{http_version} %{http_code} %{num_connects} %{content_type}\n"


@dataclass(frozen=True)
class Answer:
    """What curl met."""

    version: str
    status: int
    media_type: str
    headers: dict[str, str]
    body: str


@pytest.fixture(params=["--http1.1", "--http2-prior-knowledge"])
def protocol(request: pytest.FixtureRequest) -> str:
    """Both protocols of the port."""
    return str(request.param)


def curl(address: str, *flags: str, path: str = "/") -> Answer:
    """Send one request."""
    done = run("curl", "-sS", "-i", "-w", "\n" + SHOWN, *flags, f"http://{address}{path}")
    assert done.returncode == 0, done.stderr
    text, _, shown = done.stdout.rstrip("\n").rpartition("\n")
    head, _, body = text.replace("\r\n", "\n").partition("\n\n")
    while head.startswith("HTTP/1.1 100"):
        head, _, body = body.partition("\n\n")
    version, status, _, media_type = [*shown.split(" ", 3), ""][:4]
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head.split("\n")[1:])}
    return Answer(version, int(status), media_type, headers, body)


def post(address: str, body: str, *flags: str, media_type: str = "application/json") -> Answer:
    """POST a body."""
    return curl(address, "-H", f"Content-Type: {media_type}", "--data-binary", body, *flags)


def test_R148_a_value_is_answered(square: Served, protocol: str) -> None:
    """200, the selected type, and the payload as the body, by either protocol on one port."""
    answer = post(square.http, "7", protocol)
    assert (answer.status, answer.media_type, answer.body) == (200, "application/json", "49")
    assert answer.version == ("2" if "2" in protocol else "1.1")


def test_the_answer_is_as_accepted(square: Served, protocol: str) -> None:
    """An Accept header chooses the type of the answer."""
    answer = post(square.http, "7", protocol, "-H", "Accept: text/plain")
    assert (answer.status, answer.media_type.partition(";")[0], answer.body) == (200, "text/plain", "49")


def test_R091_a_form_is_what_curl_sends_by_default(named: Served, protocol: str) -> None:
    """`curl -d a=1` reaches the function as an object."""
    answer = curl(named.http, protocol, "-H", "Invoker-Function: echo", "-d", "a=1&b=2&b=3")
    assert (answer.status, json.loads(answer.body)) == (200, {"a": "1", "b": ["2", "3"]})


@pytest.mark.parametrize(
    ("flags", "status"),
    [
        (("-H", "Content-Type: application/x-doom", "-d", "7"), 415),
        (("-H", "Content-Type: application/json", "-H", "Accept: text/zglorbf", "-d", "7"), 406),
        (("-H", "Content-Type: application/json", "-d", "{"), 400),
        (("-X", "PUT", "-d", "7"), 405),
    ],
)
def test_R144_R145_R146_R142_a_wrong_request_is_refused(
    square: Served, protocol: str, flags: tuple[str, ...], status: int
) -> None:
    """Each mistake has its status and a body that says what it is."""
    answer = curl(square.http, protocol, *flags)
    assert answer.status == status
    assert answer.body.strip()
    if status == 405:
        assert answer.headers["allow"] == "POST"


def test_R142_another_path_is_not_found(square: Served, protocol: str) -> None:
    """404, and the function is not called."""
    assert curl(square.http, protocol, "-d", "7", path="/nope").status == 404


def test_R153_an_error_is_json_for_who_prefers_json(square: Served, protocol: str) -> None:
    """The error's text is under `error`; others get a line of text."""
    flags = ("-H", "Content-Type: application/x-doom", "-d", "7")
    asked = curl(square.http, protocol, *flags, "-H", "Accept: application/json")
    assert "Unsupported Media Type" in json.loads(asked.body)["error"]
    told = curl(square.http, protocol, *flags, "-H", "Accept: text/plain")
    assert (told.media_type.partition(";")[0], told.body[-1]) == ("text/plain", "\n")


def test_R155_a_chunked_body_is_read(square: Served) -> None:
    """HTTP/1.1 with Transfer-Encoding: chunked."""
    assert post(square.http, "12", "--http1.1", "-H", "Transfer-Encoding: chunked").body == "144"


def test_R155_a_connection_is_kept(square: Served) -> None:
    """The second request of a curl goes over the first one's connection."""
    url = f"http://{square.http}/"
    request = ("-sS", "--http1.1", "-w", " " + SHOWN, "-H", "Content-Type: application/json", "-d", "3", url)
    done = run("curl", *request, "--next", *request)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [(body, status, connects) for body, _, status, connects, *_ in lines] == [
        ("9", "200", "1"),
        ("9", "200", "0"),
    ]


def test_R155_an_http2_connection_is_kept(square: Served) -> None:
    """Two requests in a row on one connection, both answered.

    By Node: curl 7.88 ends with "Error in the HTTP2 framing layer" when it uses a prior-knowledge connection again,
    with any server, Node's own included.
    """
    done = run("node", Path(__file__).parent / "http2.js", f"http://{square.http}", "3")
    assert done.stdout.splitlines() == ["200 9", "200 9"], done.stderr


def test_R154_a_body_over_the_limit_is_refused(square: Served, protocol: str, tmp_path: Path) -> None:
    """413 for five MiB against a limit of four, and the next request is served."""
    big = tmp_path / "big"
    big.write_bytes(b"7" * (5 << 20))
    assert post(square.http, f"@{big}", protocol).status == 413
    assert post(square.http, "7", protocol).status == 200


def test_R156_probes_are_answered(square: Served, protocol: str) -> None:
    """Orchestrators learn that the process lives and is ready."""
    assert [curl(square.http, protocol, path=path).status for path in ("/healthz", "/livez", "/readyz")] == [200] * 3


def test_R148_R139_a_function_chooses_the_status(named: Served, protocol: str) -> None:
    """X-Http-Status becomes the status and is not a header of the answer."""
    wanted = json.dumps({"payload": "made", "headers": {"X-Http-Status": "201", "X-Other": "kept"}})
    answer = post(named.http, wanted, protocol, "-H", "Invoker-Function: respond")
    assert answer.status == 201
    assert "x-http-status" not in answer.headers
    assert answer.headers["x-other"] == "kept"


def test_G015_R155_a_unix_socket_has_the_whole_transport(protocol: str, tmp_path: Path) -> None:
    """curl is given its path; the host of the URL means nothing."""
    path = tmp_path / "http.sock"
    flags = (protocol, "--unix-socket", str(path))
    with serving("functions.square:square", "--http-unix", str(path)):
        assert curl("localhost", *flags, "-H", "Content-Type: application/json", "-d", "7").body == "49"
        assert curl("localhost", *flags, path="/readyz").body.strip() == "ok"
        assert "invoker_" in curl("localhost", *flags, path="/metrics").body
        assert '"Name": "square"' in curl("localhost", *flags, path="/graphpipe").body
    assert not path.exists()


def test_G005_R155_nothing_is_sent_that_is_refused(square: Served, tmp_path: Path) -> None:
    """curl waits for 100 before it sends a large body."""
    big, small = tmp_path / "big", tmp_path / "small"
    big.write_bytes(b"7" * (5 << 20))
    small.write_bytes(b" " * (2 << 20) + b"7")
    for body, sent, status in ((big, 0, 413), (small, (2 << 20) + 1, 200)):
        flags = ("--http1.1", "--expect100-timeout", "5", "-H", "Expect: 100-continue", "--data-binary", f"@{body}")
        done = run("curl", "-sS", "-o", tmp_path / "out", "-w", "%{size_upload} %{http_code}", *flags, _url(square))
        assert done.stdout.split() == [str(sent), str(status)], done.stderr


def _url(served: Served) -> str:
    return f"http://{served.http}/"
