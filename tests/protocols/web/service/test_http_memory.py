"""`invoker.protocols.web.service.http`: bodies against the memory of the process."""

from __future__ import annotations

from tests.transports.served import Served

BODY = bytes(1 << 20)


def size(body: bytes) -> int:
    return len(body)


async def test_a_body_counts_until_its_response_is_made() -> None:
    """Once, while the function runs, and not any more afterwards, however the request ends."""
    held: list[int] = []

    def weigh(_: bytes) -> int:
        held.append(served.driver.engine.memory.held)
        if len(held) > 1:
            raise ValueError("not again")
        return held[0]

    async with Served.at(weigh) as served:
        assert (await served.post(BODY, content_type="application/octet-stream")).status_code == 200
        assert len(BODY) <= held[0] < 1.2 * len(BODY)
        assert served.driver.engine.memory.held == 0
        assert (await served.post(BODY, content_type="application/octet-stream")).status_code == 500
        assert served.driver.engine.memory.held == 0


async def test_a_body_is_refused_when_the_process_holds_too_much() -> None:
    """503 and when to try again; a small one is served all the same."""
    async with Served.at(size) as served:
        served.driver.engine.memory.most_bytes = len(BODY) // 2
        response = await served.post(BODY, content_type="application/octet-stream")
        assert response.status_code == 503
        assert response.headers["retry-after"] == "1"
        assert "INVOKER_MEMORY_BYTES" in response.text
        assert served.driver.engine.memory.held == 0
        assert (await served.post(b"small", content_type="application/octet-stream")).content == b"5"
