"""HealthCheck: names, dependencies, draining."""

from __future__ import annotations

from typing import Any

import pytest

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.core.steps import Close, Send
from invoker.errors import Status
from invoker.protocols.toolbridge.health import HealthCheck
from tests.protocols.toolbridge.hosts import new_host_sessions

SERVING, NOT_SERVING = pb.HealthCheckResponse.SERVING, pb.HealthCheckResponse.NOT_SERVING


def asked(
    service: str = "", *, serves: bool = True, critical: tuple[str, ...] = (), **found: bool | None
) -> pb.HealthCheckResponse:
    """The response."""
    dependencies = {name.replace("_", ":"): value for name, value in found.items()}
    session = HealthCheck(
        new_host_sessions(), serves=lambda: serves, dependencies=lambda: dependencies, critical=critical
    )  # fmt: skip
    send, close = session.receive(pb.HealthCheckRequest(service=service).SerializeToString())
    assert isinstance(send, Send)
    assert isinstance(close, Close)
    assert close.error is None
    return pb.HealthCheckResponse.FromString(send.frame)


@pytest.mark.parametrize(
    "service", ["", "dspex.bridge.SnakepitBridge", "tools", "sessions", "variables", "agents"]
)  # fmt: skip
def test_T150_known_services_serve(service: str) -> None:
    """They are one process."""
    assert asked(service).status == SERVING


def test_T151_an_unknown_service_is_not_found() -> None:
    """By the status of the rpc, with the error in its trailer (T-160)."""
    session = HealthCheck(new_host_sessions(), serves=lambda: True, dependencies=dict)
    (close,) = session.receive(pb.HealthCheckRequest(service="tolls").SerializeToString())
    assert isinstance(close, Close)
    assert close.error is not None
    assert close.error.status == Status.NOT_FOUND
    assert "there is no service 'tolls'" in str(close.error)
    trailers: dict[str, Any] = dict(close.trailers)
    assert pb.ErrorInfo.FromString(trailers["dspex-error-bin"]).details["code"] == "unknown_service"


def test_T152_a_dependency_that_fails_matters_only_if_it_is_critical() -> None:
    """One of the hosts stands for all of them."""
    told = asked(llm=False, callback_host=False, isolation=True, audit=None)
    assert told.status == SERVING
    assert dict(told.dependencies) == {
        "llm": NOT_SERVING, "callback:host": NOT_SERVING, "isolation": SERVING,
        "audit": pb.HealthCheckResponse.UNKNOWN,
    }  # fmt: skip
    assert asked(llm=False, critical=("llm",)).status == NOT_SERVING
    assert asked(callback_host=False, critical=("callback",)).status == NOT_SERVING
    assert asked(llm=None, critical=("llm",)).status == SERVING


def test_T153_a_draining_server_does_not_serve() -> None:
    """Whatever it depends on."""
    assert asked(serves=False).status == NOT_SERVING
