"""``python -m invoker device``: what it prints, and how it ends."""

from __future__ import annotations

import asyncio
import re
import signal
from pathlib import Path
from typing import Any

import grpc
import pytest
import trustme

from functions import federated
from invoker import Update
from invoker.cli.main import main
from invoker.client.federated import Assigned, Attempt, Report, Retry, entrypoint_plan
from invoker.codecs.checkpoint import read_checkpoint, write_checkpoint
from invoker.connect.failure import CallFailed
from invoker.errors import Status
from invoker.protocols.federated.verbs.device import _awaited, _ended, _said
from tests.protocols.federated.client.peer import PeerCall, serving
from tests.protocols.federated.client.script import accepted, ack, no_eligibility, rejected, taken
from tests.serving import forked_python

ROOT = Path(__file__).resolve().parents[4]
TRAIN = "functions.federated:train"


async def plain(call: PeerCall) -> None:
    """A whole round."""
    await call.hear()
    await call.say(ack(), no_eligibility())
    await call.hear()
    plan = entrypoint_plan(TRAIN, {"steps": 2})
    await call.say(accepted(plan=plan, init_checkpoint=write_checkpoint(federated.initial())))
    await call.hear()
    await call.say(taken())
    await call.hear()


async def refusing(call: PeerCall) -> None:
    """Not now."""
    await call.hear()
    await call.say(ack(), no_eligibility())
    await call.hear()
    await call.say(rejected())
    await call.hear()


async def holding(call: PeerCall) -> None:
    """Checked in, and no round begins."""
    await call.hear()
    await call.say(ack(), no_eligibility())
    await call.hear()
    await call.hear()


async def command(target: str, *more: str) -> Any:
    """Start the command."""
    words = ["-m", "invoker", "device", TRAIN, "--server", target, "--population", "iris"]
    words += ["--examples", "functions.federated:examples", *more]
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(forked_python(), *words, cwd=ROOT, stdout=pipe, stderr=pipe)


async def test_a_device_tells_what_happens() -> None:
    """Accepted, trained, reported, when it comes again; what it sent is what the function makes of its flowers."""
    async with serving(plain) as peer:
        process = await command(peer.target, "--once", "--api-key", "secret", "--no-secagg")
        out, err = await asyncio.wait_for(process.communicate(), 30)
    assert (process.returncode, err) == (0, b"")
    lines = out.decode().splitlines()
    assert lines[0] == "device: accepted for train"
    assert re.fullmatch(r"device: trained in \d+\.\d+ s, \d+ bytes", lines[1])
    assert lines[2].startswith("device: reported; may come again in ")
    found = read_checkpoint(peer.calls[0].heard[-1].report_request.report.update_checkpoint, Update)
    flowers = iter(federated.examples(0, 1))
    assert found == federated.train(federated.initial(), flowers, steps=2)
    assert peer.metadata[0]["x-goog-api-key"] == "secret"


async def test_a_device_that_waits_says_what_for() -> None:
    """Once, some seconds after the last news; it goes on waiting."""
    async with serving(holding) as peer:
        process = await command(peer.target, "--once", "--no-secagg")
        call = await asyncio.wait_for(process.stdout.readline(), 30)
        process.send_signal(signal.SIGINT)
        out, err = await asyncio.wait_for(process.communicate(), 30)
    wanted = "device: waits: the server has begun no round of 'iris' for it yet, and may need more devices\n"
    assert (call.decode(), err) == (wanted, b"")
    assert out.decode().startswith("device: stopped")


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (Assigned("1", "train", b"", b""), "its function is training"),
        (Report(), "the server has not taken its report yet"),
        (None, "the server has begun no round of 'iris'"),
    ],
)
def test_what_a_device_waits_for(event: Any, text: str) -> None:
    """It depends on what happened last."""
    assert _awaited(event, "iris").startswith(text)


async def test_a_device_comes_by_tls(tmp_path: Path) -> None:
    """It trusts the authority that it is told; without one that it knows it sends nothing."""
    authority = trustme.CA()
    cert, path = authority.issue_cert("127.0.0.1"), tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    chain = b"".join(blob.bytes() for blob in cert.cert_chain_pems)
    credentials = grpc.ssl_server_credentials([(cert.private_key_pem.bytes(), chain)])
    async with serving(plain, credentials) as peer:
        process = await command(peer.target, "--once", "--ca", str(path))
        out, _ = await asyncio.wait_for(process.communicate(), 30)
        assert process.returncode == 0, out
        process = await command(peer.target, "--once", "--tls")
        out, _ = await asyncio.wait_for(process.communicate(), 30)
    assert (process.returncode, len(peer.calls)) == (1, 1)
    assert out.startswith(b"device: lost: UNAVAILABLE: ")


async def test_devices_stop_when_nobody_reads_what_they_say() -> None:
    """As in ``invoker device ... | head -1``."""
    async with serving(plain) as peer:
        process = await command(peer.target, "--devices", "2")
        assert process.stdout is not None
        await process.stdout.readline()
        process.stdout._transport.close()  # type: ignore[attr-defined]
        assert await asyncio.wait_for(process.wait(), 30) == 141


async def test_several_devices_run_side_by_side() -> None:
    """Each has its own flowers and its own lines."""
    async with serving(plain) as peer:
        process = await command(peer.target, "--once", "--devices", "5")
        out, _ = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 0
    assert {call.partition(":")[0] for call in out.decode().splitlines()} == {f"device {one}" for one in range(5)}
    sent = [call.heard[-1].report_request.report.update_checkpoint for call in peer.calls]
    assert [read_checkpoint(one, Update).examples for one in sent] == [30.0] * 5
    assert len(set(sent)) == 5


async def test_a_device_that_is_not_wanted_says_so() -> None:
    """Not wanted is no failure; a server that is not there is one."""
    async with serving(refusing) as peer:
        process = await command(peer.target, "--once")
        out, _ = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 0
    assert out.decode().startswith("device: not wanted now; may come again in ")
    process = await command(peer.target, "--once")
    out, _ = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 1
    assert out.decode().startswith("device: lost: UNAVAILABLE: nothing listens at")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_F145_an_interrupt_stops_the_device(number: signal.Signals) -> None:
    """It half-closes and leaves, with a clean end."""
    is_waiting = asyncio.Event()

    async def silent(call: PeerCall) -> None:
        await call.hear()
        await call.say(ack(), no_eligibility())
        await call.hear()
        is_waiting.set()
        await call.hear()

    async with serving(silent) as peer:
        process = await command(peer.target)
        async with asyncio.timeout(20):
            await is_waiting.wait()
            process.send_signal(number)
            out, err = await process.communicate()
            await peer.calls[0].ended.wait()
    assert (process.returncode, out, err) == (0, b"device: stopped\n", b"")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--server", "http://h:1"], "leave http:// out"),
        (["--server", "nowhere"], "is not HOST:PORT"),
        (["--examples", "functions.federated:none"], "give mymod:fn"),
        (["--examples", "functions.federated"], "give mymod:fn"),
        (["--examples", "functions.federated:SCALE"], "is float, and not a function"),
        (["--cert", "x"], "cannot read x"),
        (["--population", "Blüten"], "must be printable ASCII text"),
        (["--api-key", "a\nb"], "must be printable ASCII text"),
    ],
)
def test_arguments_that_cannot_be_are_refused(capsys: Any, words: list[str], text: str) -> None:
    """With exit code 2 and a sentence."""
    given = ["device", TRAIN, "--server", "127.0.0.1:1", "--population", "iris", *words]
    assert main(given) == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--devices", "0"], ["--times", "x"], ["--plan-timeout", "0"]])
def test_counts_and_times_are_checked(capsys: Any, words: list[str]) -> None:
    """So are they."""
    with pytest.raises(SystemExit) as caught:
        main(["device", TRAIN, "--server", "127.0.0.1:1", "--population", "iris", *words])
    assert caught.value.code == 2
    assert words[0] in capsys.readouterr().err


def test_a_function_that_is_not_there_is_told(capsys: Any) -> None:
    """As `serve` would tell it."""
    assert main(["device", "functions.federated:none", "--server", "127.0.0.1:1", "--population", "iris"]) == 1
    assert "none" in capsys.readouterr().err


def test_an_end_is_told_with_what_to_look_for() -> None:
    """Whose update does not fit hears why; what the server said is explained."""
    window = Retry(0.0)
    unfit = Attempt("failed", window, Status.INTERNAL, "the update does not fit secure aggregation: 'w' is empty")
    assert _ended(unfit).startswith(
        "could not train: the update does not fit secure aggregation: 'w' is empty; may come"
    )
    for detail in ("the round has closed before the report came", "the round has failed: too few reports came"):
        assert _ended(Attempt("lost", window, Status.ABORTED, detail, "train")).startswith(
            f"not counted: {detail}; may"
        )
    gone = Attempt("lost", window, Status.CANCELLED, "SecAgg aborted")
    assert "SecAgg aborted; the server ended the secure round: too many devices left" in _ended(gone)
    assert _said(CallFailed(Status.UNIMPLEMENTED, "this device has none")) == "the plan failed: this device has none"
