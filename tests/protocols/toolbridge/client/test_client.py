"""Tests of what is asked outside of sessions."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from invoker.client.toolbridge import ToolBridge, ToolCommunicationError
from invoker.errors import Status
from tests.protocols.toolbridge.client.peer import Peer


async def test_health_of_a_service(bridge: ToolBridge) -> None:
    """One that the bridge does not know is an error."""
    assert (await bridge.health("tools")).is_serving
    with pytest.raises(ToolCommunicationError) as caught:
        await bridge.health("nothing")
    assert caught.value.code is Status.NOT_FOUND


async def test_metrics_of_a_time(bridge: ToolBridge, peer: Peer) -> None:
    """Names and times travel; what is not given is absent."""
    start = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    assert (await bridge.metrics("calls", "took", start=start))["calls"] == 2
    request = peer.last("GetMetrics")
    assert list(request.metric_names) == ["calls", "took"]
    assert request.start_time.ToDatetime(tzinfo=UTC) == start
    assert not request.HasField("end_time")


async def test_a_client_that_is_not_open_says_so(peer: Peer) -> None:
    """Before, and behind."""
    bridge = ToolBridge(peer.target)
    with pytest.raises(RuntimeError, match="async with ToolBridge"):
        bridge.session()
    async with bridge:
        await bridge.health()
    with pytest.raises(RuntimeError, match="not open"):
        await bridge.health()
    await bridge.close()
