"""References to content elsewhere: which are refused by default, and when they are resolved. Catalogue 2.4."""

from __future__ import annotations

import base64

from invoker_conformance.evergreen.actions import HI, items, upper
from invoker_conformance.evergreen.frames import OCTETS, TEXT, A, F
from invoker_conformance.evergreen.rules import BAD, REFD
from invoker_conformance.evergreen.stage import Stage
from invoker_conformance.scenario import scenario

_ELSEWHERE = (
    "file:///etc/hostname",
    "file://localhost/etc/hostname",
    "file://path/to/file/part1",
    "http://127.0.0.1/x",
    "http://localhost/x",
    "http://0.0.0.0/x",
    "http://10.0.0.1/x",
    "http://[::1]/x",
    "http://[::ffff:127.0.0.1]/x",
    "https://169.254.169.254/latest/meta-data",
    "ftp://example.org/x",
    "gopher://example.org/x",
    "no-such-scheme:x",
)


def data_uri(data: bytes, media_type: str = "") -> str:
    """A data URI in base64."""
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


@scenario("ET-65", "E-050", "E-052", function=("upper", "octets"))
async def ref_data_uri(stage: Stage) -> None:
    """data: URIs are decoded, in base64 and in percent-encoding."""
    octets = A("octets", {"value": "p"}, {"out": "r"})
    every = bytes(range(256))
    await stage.succeeds(upper(), F("p", m=TEXT, ref=data_uri(b"hi")), r=["HI"])
    await stage.succeeds(upper(), F("p", m=TEXT, ref="data:,h%69%20%E6%97%A5"), r=["HI 日"])
    await stage.succeeds(octets, F("p", m=OCTETS, ref=data_uri(every, "image/png")), r=[every])
    await stage.succeeds(upper(), F("p", m=TEXT, ref="data:,"), r=[""])


@scenario("E-051", function=("upper", "items"))
async def type_of_the_node_wins(stage: Stage) -> None:
    """The node's mimetype describes the content; the one in the URI is ignored."""
    await stage.succeeds(items(), F("p", m=TEXT, ref=data_uri(b"[1]", "application/json")), r=[{"items": ["[1]"]}])
    await stage.succeeds(items(), F("p", m="application/json", ref="data:image/png,[1]"), r=[{"items": [[1]]}])


@scenario("E-052", "E-057", function="upper")
async def malformed_data_uri(stage: Stage) -> None:
    """A data: URI that cannot be read is a bad input."""
    for uri in ("data:no comma", "data:;base64,%%%", "data:;base64,A"):
        await stage.fails(BAD, upper(), F("p", m=TEXT, ref=uri))


@scenario("ET-66", "ET-67", "E-050", "E-054", "E-057", function="upper")
async def other_schemes_refused(stage: Stage) -> None:
    """Any other scheme is refused by default."""
    for uri in _ELSEWHERE:
        await stage.fails(REFD, upper(), F("p", m=TEXT, ref=uri))


@scenario("E-058", "E-116", function="upper")
async def relative_reference_refused(stage: Stage) -> None:
    """A relative reference is refused, and the text names no path of the server."""
    for uri in ("setup.cfg", "./README.md", "/etc/hostname", "../x", "//host/x", ""):
        await stage.fails(REFD, upper(), F("p", m=TEXT, ref=uri))


@scenario("ET-70", "E-042", function=("upper", "items", "pieces"))
async def ref_plus_data_concatenated(stage: Stage) -> None:
    """A leaf is the concatenation of its data and references, in the order of seq."""
    mixed = [F("p", 0, "+", m=TEXT, t="one "), F("p", 1, "+", ref=data_uri("zw日".encode()[:3])), F("p", 2, t="o")]
    await stage.succeeds(upper(), F("p", 0, "+", m=TEXT, t="a"), F("p", 1, ref="data:,b"), r=["AB"])
    await stage.succeeds(upper(), F("p", 1, t="b"), F("p", 0, "+", m=TEXT, ref="data:,a"), r=["AB"])
    halves = [mixed[0], mixed[1], F("p", 2, d="zw日".encode()[3:])]
    await stage.succeeds(items(), *reversed(halves), r=[{"items": ["one zw日"]}])
    await stage.succeeds(A("pieces", {"text": "p"}, {"out": "r"}), *halves, r=["one zw日"])


@scenario("ET-69", "E-056", function=("upper", "leave"))
async def ref_unused_not_fetched(stage: Stage) -> None:
    """References that no action reads are never looked at, so they cannot fail."""
    unused = [F(f"n{n}", m=TEXT, ref=uri) for n, uri in enumerate((*_ELSEWHERE, "data:no comma", "relative"))]
    await stage.succeeds(*unused, upper(), HI, r=["HI"])
