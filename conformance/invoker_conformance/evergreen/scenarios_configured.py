"""Features that an operator may allow; each scenario needs a target that was started with them.

Catalogue 2.2, 2.3, 2.4, 2.6.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from invoker_conformance.evergreen.actions import HI, upper
from invoker_conformance.evergreen.frames import TEXT, A, F, Part
from invoker_conformance.evergreen.rules import ACT, ANF, FRAG, REFD, REFX, TNF
from invoker_conformance.evergreen.scenarios_references import data_uri
from invoker_conformance.evergreen.scenarios_talks import QUESTION, question
from invoker_conformance.evergreen.stage import Stage
from invoker_conformance.faults import Fault
from invoker_conformance.scenario import NotProvided, scenario


async def needs(stage: Stage, what: str, absent: Fault, *parts: Part) -> None:
    """Check that a session with these parts does not end with this fault.

    Raises:
        NotProvided: The session ends with this fault, so the target was not started with this feature.
    """
    async with stage.session() as session:
        await session.all(*parts)
        ending = await session.ends()
    if absent.matches(ending.code, ending.detail):
        raise NotProvided(what)


@scenario("ET-06", "E-036", function="GENERATE")
async def metadata_identical(stage: Stage) -> None:
    """In the mode identical a later seq may repeat the metadata, in any order; other metadata abort."""
    frames = question(data_uri(b"first part "), data_uri(b"second part"), repeats_metadata=True)
    await needs(stage, "metadata mode identical", FRAG, *frames)
    expected = [f"{QUESTION.upper()}<22 bytes>"]
    await stage.succeeds(*frames, response_1=expected)
    await stage.succeeds(*frames[:3], frames[4], frames[3], response_1=expected)
    await stage.fails(FRAG, F("p", 0, "+", m=TEXT, t="a"), F("p", 1, m="text/html", t="b"))
    await stage.fails(FRAG, F("p", 1, m="text/html", t="b"), F("p", 0, "+", m=TEXT, t="a"))


@scenario("ET-48", "E-074", function="upper")
async def target_known(stage: Stage) -> None:
    """The target ``configured`` is served, beside the default one; others are still unknown."""
    action = A("upper", {"text": "p"}, {"out": "r"}, target="configured")
    await needs(stage, "a target named configured", TNF, action, HI)
    await stage.succeeds(action, HI, upper("p", "s"), r=["HI"], s=["HI"])
    await stage.fails(TNF, A("upper", {"text": "p"}, {"out": "r"}, target="Configured"))


@scenario("E-071", function="upper")
async def action_by_another_name(stage: Stage) -> None:
    """The action ``ask`` is the function ``upper``, which keeps its own name."""
    ask = A("ask", {"text": "p"}, {"out": "r"})
    await needs(stage, "upper as the action ask", ANF, ask, HI)
    await stage.succeeds(ask, HI, upper("p", "s"), r=["HI"], s=["HI"])


@scenario("E-075", "E-078", function="upper")
async def input_by_another_name(stage: Stage) -> None:
    """The input ``aka`` is the parameter ``text``, which keeps its own name; both at once are one name twice."""
    aka = A("upper", {"aka": "p"}, {"out": "r"})
    await needs(stage, "text as the input aka", ACT, aka, HI)
    await stage.succeeds(aka, HI, upper("p", "s"), r=["HI"], s=["HI"])
    await stage.fails(ACT, A("upper", {"aka": "p", "text": "q"}, {"out": "r"}))


@contextlib.contextmanager
def folder(stage: Stage) -> Iterator[Path]:
    """Make a new folder below the root of references.

    Raises:
        NotProvided: No such root was given.
    """
    root = stage.target.ref_root
    if not root:
        raise NotProvided("a --ref-root that the target may read")
    with tempfile.TemporaryDirectory(dir=root) as name:
        yield Path(name)


@scenario("ET-66", "E-053", "E-042", function="upper")
async def ref_file_inside_root(stage: Stage) -> None:
    """A file below the root is read; its path is percent-decoded once, and may name localhost."""
    with folder(stage) as place:
        (place / "a file%41.txt").write_text("from a file")
        uri = place.as_uri() + "/a%20file%2541.txt"
        for each in (uri, uri.replace("file://", "file://localhost", 1)):
            await stage.succeeds(upper(), F("p", m=TEXT, ref=each), r=["FROM A FILE"])
        joined = [F("p", 0, "+", m=TEXT, t="read "), F("p", 1, "+", ref=uri), F("p", 2, t="!")]
        await stage.succeeds(upper(), *joined, r=["READ FROM A FILE!"])
        await stage.fails(REFX, upper(), F("p", m=TEXT, ref=place.as_uri() + "/absent.txt"))


def _traps(place: Path, elsewhere: Path) -> Path:
    """Make a secret file outside of the root, paths that lead to it, and a pipe."""
    secret = elsewhere / "secret.txt"
    secret.write_text("secret")
    (place / "link.txt").symlink_to(secret)
    (place / "folder").symlink_to(elsewhere)
    os.mkfifo(place / "pipe")
    return secret


@scenario("ET-66", "E-053", "E-058", "E-116", function="upper")
async def ref_file_outside_root(stage: Stage) -> None:
    """Paths that lead out of the root are refused: dots, links, encoded dots; so is a file that is not regular."""
    with folder(stage) as place, tempfile.TemporaryDirectory() as elsewhere:
        secret = _traps(place, Path(elsewhere))
        depth = "../" * (len(place.parts) + 1)
        for path in (
            "/link.txt",
            "/folder/secret.txt",
            f"/{depth}etc/hostname",
            f"/{depth.replace('.', '%2e')}etc/hostname",
            f"/{depth.replace('/', '%2F')}etc/hostname",
            "/pipe",
            "",
        ):
            await stage.fails(REFD, upper(), F("p", m=TEXT, ref=place.as_uri() + path))
        await stage.fails(REFD, upper(), F("p", m=TEXT, ref=secret.as_uri()))


@scenario("ET-69", "E-056", function="upper")
async def ref_is_read_once_and_late(stage: Stage) -> None:
    """A reference is read when an action needs it, not before, and once for all actions of the session."""
    with folder(stage) as place:
        async with stage.session() as session:
            file = place / "late.txt"
            await session.send(F("p", m=TEXT, ref=file.as_uri()))
            await session.silent(0.2)
            file.write_text("first")
            await session.send(upper())
            await session.gives("r", "FIRST")
            file.write_text("second")
            await session.send(upper("p", "s"))
            await session.succeeds(s=["FIRST"])
