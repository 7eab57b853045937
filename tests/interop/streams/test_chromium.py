"""EventSource and fetch in a real Chromium: a page of a listed origin streams from functions."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SLOW
from tests.interop.streams.conftest import Streamed
from tests.interop.test_chromium import CHROMIUM, LIMIT_S, Browser, browser
from tests.serving import serving

pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: NO BROWSER WAS TRIED; apt-get install chromium"),
]

PAGE = """<!doctype html><title>a page</title><script type="module">
const target = %(target)s;
const report = (found) => fetch("/report", {method: "POST", body: JSON.stringify(found)});
const post = (name, accept, more) => fetch(target + name, {method: "POST", headers: {accept}, ...more});

// All that an EventSource tells, until it has given up for good.
function listened(path) {
  return new Promise((done) => {
    const source = new EventSource(target + path), saw = [];
    let opened = 0;
    source.onopen = () => { opened += 1; };
    source.onmessage = (event) => saw.push([event.lastEventId, event.data]);
    source.addEventListener("end", (event) => saw.push(["end", event.data]));
    source.addEventListener("error", (event) => {
      if (event.data) saw.push(["error", JSON.parse(event.data).status]);
      else if (source.readyState === EventSource.CLOSED) done({saw, opened});
    });
  });
}

async function* lines(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const {value, done} = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\\n");
    rest = parts.pop();
    yield* parts;
  }
}
%(script)s
</script>"""


class _Site(http.server.ThreadingHTTPServer):
    """Serves a page, and takes what it reports."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.page = ""
        self.report: dict[str, Any] = {}
        self.reported = threading.Event()


class _Answers(http.server.BaseHTTPRequestHandler):
    server: _Site

    def do_GET(self) -> None:
        """The page."""
        self._answer(self.server.page.encode())

    def do_POST(self) -> None:
        """The report."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(b"")
        self.server.report = json.loads(body)
        self.server.reported.set()

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def site() -> Iterator[_Site]:
    """A web site on this machine."""
    with _Site() as made:
        thread = threading.Thread(target=made.serve_forever, name="web site")
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser with a tab for each test."""
    with browser(tmp_path_factory.mktemp("profile"), "--no-proxy-server") as made:
        yield made


@pytest.fixture
def listed(site: _Site, tmp_path: Path) -> Iterator[Streamed]:
    """A server that lets pages of the site call."""
    notes = tmp_path / "notes"
    notes.mkdir()
    args = ("--allowed-origin", f"http://127.0.0.1:{site.server_port}")
    with serving("tests.interop.streams.functions", *args, env={"TEST_NOTES": str(notes)}) as served:
        yield Streamed(served.http, notes)


@contextmanager
def opened(site: _Site, listed: Streamed, chromium: Browser, script: str) -> Iterator[dict[str, Any]]:
    """What the page reports; it stays open until the end of the block."""
    site.reported.clear()
    site.page = PAGE % {"target": json.dumps(f"{listed.url}/"), "script": script}
    with chromium.tab(f"http://127.0.0.1:{site.server_port}/page"):
        assert site.reported.wait(LIMIT_S * SLOW), site.page
        yield site.report


def test_H010_an_event_source_ends_without_calling_again(site: _Site, listed: Streamed, chromium: Browser) -> None:
    """It asks again, with the number of the last event; the answer makes it stop, and nothing runs a second time."""
    with opened(site, listed, chromium, 'report(await listened("counted?to=3"));') as found:
        assert found["saw"] == [["1", "1"], ["2", "2"], ["3", "3"], ["end", "{}"]]
        assert found["opened"] == 1
        assert listed.notes("counted") == ["begun", "done", "closed"]


def test_H012_an_event_source_is_told_of_an_error(site: _Site, listed: Streamed, chromium: Browser) -> None:
    """As an event with data, which the failure of a connection has not; then it stops as well."""
    with opened(site, listed, chromium, 'report(await listened("failing"));') as found:
        assert found["saw"] == [["1", "1"], ["2", "2"], ["error", 500]]
        assert found["opened"] == 1


def test_H004_an_event_source_that_is_closed_cancels(site: _Site, listed: Streamed, chromium: Browser) -> None:
    """The function's ``finally`` runs."""
    script = """
    const source = new EventSource(target + "ticks");
    source.onmessage = (event) => { if (event.data === "3") { source.close(); report({last: event.data}); } };"""
    with opened(site, listed, chromium, script) as found:
        assert found == {"last": "3"}
        assert "done" not in listed.waited("ticks", "closed")
        assert listed.notes("ticks").count("begun") == 1


def test_H004_a_tab_that_is_closed_cancels(site: _Site, listed: Streamed, chromium: Browser) -> None:
    """While an EventSource of it is open."""
    script = """
    const source = new EventSource(target + "ticks");
    source.onmessage = (event) => { if (event.data === "3") report({}); };"""
    with opened(site, listed, chromium, script):
        assert "closed" not in listed.notes("ticks")
    assert "done" not in listed.waited("ticks", "closed")


def test_a_fetch_reads_lines_and_is_aborted(site: _Site, listed: Streamed, chromium: Browser) -> None:
    """Each line comes when the function yields it."""
    script = """
    const stop = new AbortController(), saw = [];
    let error = "";
    try {
      for await (const line of lines(await post("sync_ticks", "application/x-ndjson", {signal: stop.signal}))) {
        saw.push(line);
        if (saw.length === 3) stop.abort();
      }
    } catch (met) { error = met.name; }
    report({saw: saw.slice(0, 3), error});"""
    with opened(site, listed, chromium, script) as found:
        assert found == {"saw": ["1", "2", "3"], "error": "AbortError"}
        assert "done" not in listed.waited("sync_ticks", "closed")


def test_a_form_of_a_page_fills_several_inputs(site: _Site, listed: Streamed, chromium: Browser) -> None:
    """FormData keeps the order of its fields."""
    script = """
    const form = new FormData(), saw = [];
    for (const word of ["ho 2", "hi 1"]) {
      form.append("words", word.split(" ")[0]);
      form.append("times", word.split(" ")[1]);
    }
    for await (const line of lines(await post("repeat", "application/x-ndjson", {body: form}))) saw.push(line);
    report({saw});"""
    with opened(site, listed, chromium, script) as found:
        assert found == {"saw": ['"ho"', '"ho"', '"hi"']}
