"""Headless Chromium with a page of somebody else's: what it may do with a server on this machine."""

from __future__ import annotations

import http.client
import http.server
import json
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.conftest import SLOW
from tests.serving import serving

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
LIMIT_S = 20.0
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run", "--disable-gpu", "--disable-quic", "--host-resolver-rules=MAP *.example 127.0.0.1",
)  # fmt: skip

pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: NO BROWSER WAS TRIED; apt-get install chromium"),
]

PAGE = """<!doctype html><title>hostile</title><script type="module">
const target = %(target)s, found = {};
async function attempt(name, work) {
  try { found[name] = await work(); } catch (error) { found[name] = String(error.name || error); }
}
const post = (more) => fetch(target + "/", {method: "POST", ...more});
const seen = async (answer) => answer.type + " " + answer.status + " " + await answer.text();
await attempt("text", async () => seen(await post({mode: "no-cors", body: "text"})));
await attempt("no type", async () => seen(await post({mode: "no-cors", body: new Blob(["no type"])})));
await attempt("form", async () => seen(await post({mode: "no-cors", body: new URLSearchParams({x: "form"})})));
await attempt("multipart", async () => {
  const form = new FormData(); form.append("in", "multipart");
  return seen(await post({mode: "no-cors", body: form})); });
await attempt("beacon", async () => navigator.sendBeacon(target + "/", "beacon"));
await attempt("cors", async () => seen(await post({body: "cors"})));
await attempt("preflighted", async () => seen(await post({
  body: "preflighted", headers: {"content-type": "application/octet-stream", "x-own": "1"}})));
await attempt("graphpipe", async () => seen(
  await fetch(target + "/graphpipe", {method: "POST", mode: "no-cors", body: "g"})));
await attempt("numbers", async () => {
  const answer = await fetch(target + "/invocations"); return answer.type + " " + answer.status; });
await attempt("events", () => new Promise((done) => {
  const events = new EventSource(target + "/invocations");
  events.onopen = () => done("open"); events.onerror = () => { events.close(); done("error"); }; }));
await attempt("socket", () => new Promise((done) => {
  const socket = new WebSocket(target.replace("http", "ws") + "/");
  socket.onopen = () => done("open"); socket.onerror = () => done("error"); }));
await attempt("function socket", () => new Promise((done) => {
  const socket = new WebSocket(target.replace("http", "ws") + "/note/ws", "invoker.v1"); let last = "nothing";
  socket.onopen = () => { socket.send(new Blob(["socket"])); socket.send('{"end":true}'); };
  socket.onmessage = ({data}) => { last = data; };
  socket.onerror = () => done("error"); socket.onclose = ({code}) => done(code + " " + last); }));
await attempt("stream", async () => seen(await post({headers: {accept: "text/event-stream"}, body: "stream"})));
await attempt("named", async () => seen(
  await fetch(target + "/note", {method: "POST", mode: "no-cors", body: "named"})));
await attempt("get", async () => seen(await fetch(target + "/note?x=get")));
await attempt("blind get", async () => seen(await fetch(target + "/note?x=blind", {mode: "no-cors"})));
await attempt("safe events", () => new Promise((done) => {
  const events = new EventSource(target + "/note?x=events");
  events.onopen = () => done("open"); events.onerror = () => { events.close(); done("error"); }; }));
await attempt("picture", () => new Promise((done) => {
  const image = new Image(); image.onload = () => done("loaded"); image.onerror = () => done("error");
  image.src = target + "/note?x=picture"; }));
await attempt("script", () => new Promise((done) => {
  const script = document.createElement("script"); script.onload = () => done("loaded");
  script.onerror = () => done("error"); script.src = target + "/note?x=script"; document.body.append(script); }));
await attempt("frame", () => new Promise((done) => {
  const frame = document.createElement("iframe"); frame.onload = () => done("loaded");
  frame.src = target + "/note?x=frame"; document.body.append(frame); }));
await attempt("functions", async () => seen(await fetch(target + "/functions")));
await attempt("openapi", async () => seen(await fetch(target + "/openapi.json")));
await attempt("submitted form", () => new Promise((done) => {
  const frame = document.createElement("iframe"); frame.name = "into"; document.body.append(frame);
  const form = Object.assign(document.createElement("form"),
    {method: "post", action: target + "/", target: "into", enctype: "text/plain"});
  form.innerHTML = '<input name="submitted" value="form">'; document.body.append(form);
  frame.onload = () => done("loaded"); setTimeout(() => done("taken for a download"), 2000); form.submit(); }));
await fetch("/report", {method: "POST", body: JSON.stringify(found)});
</script>"""


class _Page(http.server.BaseHTTPRequestHandler):
    """Serves the page to whoever asks for /page, takes its report, and relays whatever else a browser asks a proxy."""

    server: _Pages

    def do_GET(self) -> None:
        """The page, or nothing."""
        is_page = urlsplit(self.path).path == "/page"
        self._answer(200, (PAGE % {"target": json.dumps(self.server.target)}).encode() if is_page else b"")

    def do_POST(self) -> None:
        """The report, or what goes to the target under its own name: as after the owner of a name moved it there."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path = urlsplit(self.path).path
        if path == "/report":
            self._answer(200, b"")
            self.server.take(str(self.headers["Host"]).partition(":")[0], json.loads(body))
            return
        connection = http.client.HTTPConnection(self.server.relay, timeout=5 * SLOW)
        try:
            connection.request("POST", path, body, dict(self.headers))
            answer = connection.getresponse()
            self._answer(answer.status, answer.read())
        finally:
            connection.close()

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


class _Pages(http.server.ThreadingHTTPServer):
    """Web sites of somebody else, by their names, on another port of this machine; also a proxy."""

    def __init__(self, target: str, relay: str, sites: tuple[str, ...]) -> None:
        super().__init__(("127.0.0.1", 0), _Page)
        self.target = target
        self.relay = relay
        self.sites = sites
        self.reports: dict[str, dict[str, Any]] = {}
        self.reported = threading.Event()

    def take(self, site: str, report: dict[str, Any]) -> None:
        """What a page of a site has met."""
        self.reports[site] = report
        if self.reports.keys() >= {*self.sites}:
            self.reported.set()


@contextmanager
def browsing(profile: Path, *more: str) -> Iterator[None]:
    """Chromium, with pages open, until the end of the block."""
    assert CHROMIUM is not None
    with (profile / "log").open("wb") as log:
        command = [CHROMIUM, *FLAGS, *more, f"--user-data-dir={profile}", "--remote-debugging-port=0"]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(5 * SLOW)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Browser:
    """A Chromium that opens tabs.

    Args:
        port: At which it is told to.
    """

    def __init__(self, port: int) -> None:
        self._port = port

    @contextmanager
    def tab(self, url: str) -> Iterator[None]:
        """A page, until the end of the block."""
        made = json.loads(self._told("PUT", f"/json/new?{url}"))
        try:
            yield
        finally:
            self._told("GET", f"/json/close/{made['id']}")

    def _told(self, method: str, path: str) -> bytes:
        with closing(http.client.HTTPConnection("127.0.0.1", self._port, timeout=LIMIT_S * SLOW)) as connection:
            connection.request(method, path)
            answer = connection.getresponse()
            body = answer.read()
        assert answer.status == 200, body
        return body


@contextmanager
def browser(profile: Path, *more: str) -> Iterator[Browser]:
    """A Chromium for several pages one after the other."""
    told = profile / "DevToolsActivePort"
    with browsing(profile, *more, "about:blank"):
        until_s = time.monotonic() + LIMIT_S * SLOW
        while not (told.exists() and "\n" in told.read_text()):
            assert time.monotonic() < until_s, (profile / "log").read_text(errors="replace")[-2000:]
            time.sleep(0.02)
        yield Browser(int(told.read_text().split()[0]))


def visited(invoker: str, profile: Path, *sites: str, is_rebound: bool = False) -> list[dict[str, Any]]:
    """What a page of each site met at an invoker, one beside the other; ``is_rebound``: under its own name and port."""
    with _Pages("" if is_rebound else f"http://{invoker}", invoker, sites) as pages:
        thread = threading.Thread(target=pages.serve_forever, name="web site")
        thread.start()
        try:
            here = f"127.0.0.1:{pages.server_port}"
            port, proxy = f"{pages.server_port}", "--no-proxy-server"
            if is_rebound:
                port, proxy = invoker.rpartition(":")[2], f"--proxy-server={here}"
            with browser(profile, proxy) as chromium, ExitStack() as tabs:
                for one in sites:
                    tabs.enter_context(chromium.tab(f"http://{one}:{port}/page"))
                is_reported = pages.reported.wait(LIMIT_S * SLOW)
        finally:
            pages.shutdown()
            thread.join()
    assert is_reported, (profile / "log").read_text(errors="replace")[-2000:]
    return [pages.reports[one] for one in sites]


class Noting:
    """A server whose function notes what it is called with."""

    def __init__(self, http: str, notes: Path) -> None:
        self.http = http
        self._notes = notes

    @property
    def calls(self) -> list[str]:
        """The values, sorted."""
        return sorted(self._notes.read_text().splitlines()) if self._notes.exists() else []


@contextmanager
def noting(folder: Path, *args: str) -> Iterator[Noting]:
    """Serve until the end of the block."""
    notes = folder / "notes"
    lines = (
        "from invoker import function",
        "@function(safe=True)",
        "def note(x: bytes) -> bytes:",
        f"    open({str(notes)!r}, 'ab').write(x + b'\\n')",
        "    return x",
    )
    (folder / "noting.py").write_text("\n".join(lines))
    protocols = ("--protocols", "riff,http,graphpipe,action-engine")
    with serving(f"{folder / 'noting.py'}:note", *protocols, *args) as served:
        yield Noting(served.http, notes)


SITES = ("127.0.0.1", "localhost", "evil.example")


def test_a_hostile_page_runs_nothing(tmp_path: Path) -> None:
    """Of another port of this machine, or of another name: by fetch, form, beacon, frame or WebSocket."""
    with noting(tmp_path) as invoker:
        found = visited(invoker.http, tmp_path, *SITES)
        assert invoker.calls == []
    for met in found:
        assert (met["cors"], met["preflighted"], met["socket"]) == ("TypeError", "TypeError", "error")
        assert met["function socket"] == "error"  # H-057
        assert (met["numbers"], met["events"]) == ("TypeError", "error")  # H-078
        read = ("stream", "get", "functions", "openapi")
        assert [met[one] for one in read] == ["TypeError"] * len(read)
        assert [met[one] for one in ("safe events", "picture", "script")] == ["error"] * 3
        assert str(met["blind get"]).startswith("opaque 0"), met["blind get"]


def test_a_page_of_a_name_that_leads_here_runs_nothing(tmp_path: Path) -> None:
    """DNS rebinding: for the browser everything is of one origin, and only Host tells it."""
    with noting(tmp_path) as invoker:
        (met,) = visited(invoker.http, tmp_path, "evil.example", is_rebound=True)
        assert invoker.calls == []
    assert met["cors"].startswith("basic 403 Invoker: Forbidden: the host 'evil.example")


def test_a_listed_page_calls(tmp_path: Path) -> None:
    """Its preflights are answered and it reads the answers; so each page above does try what it says."""
    with noting(tmp_path, "--allowed-origin", "*") as invoker:
        found = visited(invoker.http, tmp_path, *SITES)
        for tried in ("beacon", "cors", "no type", "preflighted", "socket", "text"):
            assert invoker.calls.count(tried) == len(SITES), tried
    for met in found:
        assert (met["preflighted"], met["socket"]) == ("cors 200 preflighted", "open")
        assert met["function socket"] == '1000 {"end":true}'
        assert (met["numbers"], met["events"]) == ("cors 200", "open")


def test_without_the_rule_of_host_a_rebound_page_calls(tmp_path: Path) -> None:
    """What --allowed-host '*' gives up, and proof that the attack is one."""
    with noting(tmp_path, "--allowed-host", "*") as invoker:
        (met,) = visited(invoker.http, tmp_path, "evil.example", is_rebound=True)
        assert "cors" in invoker.calls
    assert met["cors"] == "basic 200 cors"
