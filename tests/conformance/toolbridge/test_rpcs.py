"""Rpcs with their endings, against servers that do little."""

from __future__ import annotations

import grpc
import pytest

from invoker._pb.dspex import bridge_pb2 as pb
from invoker_conformance import Failure
from invoker_conformance.target import Target, parse_addresses
from invoker_conformance.toolbridge.rpcs import Refused, Rpcs
from tests.conformance.toolbridge.test_every_scenario import Mute, Refusing, serving


async def test_a_refusal_is_read() -> None:
    """Its status, and what the trailer says."""
    request = pb.GetSessionInfoRequest()
    async with serving(Refusing()) as address:
        target = Target(parse_addresses([address]), parse_addresses([]), timeout_s=1, message_bytes=1000)
        host = Rpcs(target, "add")
        with pytest.raises(Refused) as caught:
            await host.ask("GetSessionInfo", request, pb.SessionInfo)
        assert caught.value.code is grpc.StatusCode.INTERNAL
        assert caught.value.error is not None
        await host.refuses("GetSessionInfo", request, pb.SessionInfo, "InternalError")
        with pytest.raises(Failure, match="expected NOT_FOUND"):
            await host.refuses("GetSessionInfo", request, pb.SessionInfo, "SessionExpired", "unknown")
        with pytest.raises(Failure, match="expected an answer"):
            await host.needs("GetSessionInfo", request, pb.SessionInfo)
        await target.close()


def test_details_of_an_error_are_checked() -> None:
    """Each of them; others may be there."""
    rpcs = Rpcs(Target(parse_addresses([]), parse_addresses([]), timeout_s=1, message_bytes=1000), "add")
    error = pb.ErrorInfo(details={"limit": "1", "scope": "tool"})
    rpcs.details(error, limit="1")
    with pytest.raises(Failure, match=r"expected details .*'scope': 'session'"):
        rpcs.details(error, limit="1", scope="session")


async def test_what_hangs_is_a_failure() -> None:
    """After the limit of a wait."""
    async with serving(Mute()) as address:
        target = Target(parse_addresses([address]), parse_addresses([]), timeout_s=0.1, message_bytes=1000)
        with pytest.raises(Failure, match="no end of HealthCheck"):
            await Rpcs(target, "add").ask("HealthCheck", pb.HealthCheckRequest(), pb.HealthCheckResponse)
        await target.close()
