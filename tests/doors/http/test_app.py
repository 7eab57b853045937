"""`invoker.doors.http.app`: who answers which path; more in tests/services, where there are fronts."""

from __future__ import annotations

import httpx

from invoker.codecs import builtin
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.doors.http.door import HttpDoor
from invoker.drive.driver import Driver


async def test_a_path_that_nobody_answers_is_404() -> None:
    """The door itself runs no function."""
    engine = Engine(Catalog([]), builtin())
    driver = Driver(engine)
    door = HttpDoor(driver, lambda _: None, port=0)
    address = await door.start()
    try:
        async with httpx.AsyncClient() as client:
            response = await client.post(f"http://{address}/", content=b"1")
        assert (response.status_code, response.text) == (404, "Invoker: Not Found\n")
    finally:
        await door.stop(1)
        driver.close()
