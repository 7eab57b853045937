"""The suite of benchmarks measures what it says: bodies, byte counts, reports, medians, drawings, its own client."""

from __future__ import annotations

import re
import shutil
import socket
import threading
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from benchmarks import results
from benchmarks.__main__ import _chosen, _columns
from benchmarks.asgi import WORK
from benchmarks.bodies import JSON, Body, WrongReplyError
from benchmarks.client import decoded, first_reply, load, pingpong, summary
from benchmarks.graphpipe import WAYS
from benchmarks.headline import PLOT, headline
from benchmarks.http1 import Got, Post, length
from benchmarks.http2 import DEFAULT_WINDOW, Connection, WireError, frame
from benchmarks.load import check, h2load, parse
from benchmarks.measure import ratio, warmer
from benchmarks.plots import Bar, chart, curves
from benchmarks.report import spread, table, tables
from benchmarks.results import draw, environment, write
from benchmarks.rows import PEER_ROWS, ROWS, Row, echo_row, row_named
from benchmarks.servers import PEERS, STYLES, Series, StartError, all_series, serving
from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.tensors import write_infer_response
from invoker.tensors.arrays import to_tensor

REPORT = """finished in {time}, 5120.00 req/s, 21.05MB/s
requests: 40 total, 40 started, 40 done, 40 succeeded, 0 failed, 0 errored, 0 timeout
traffic: 5.01MB (5252880) total, 2.19KB (2240) headers (space savings 40.43%), 1.41MB (1480000) data
"""
SVG = "{http://www.w3.org/2000/svg}"
DATA, HEADERS, PING, GOAWAY, WINDOW = 0, 1, 6, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4


def test_a_body_is_a_start_and_its_frames() -> None:
    """Each frame is length-prefixed, inputs take turns, and the reply joins them."""
    body = Body(3, b"ab", inputs=2, headers=(("k", "v"),))
    left, signals = body.data, []
    while left:
        size = int.from_bytes(left[1:5], "big")
        signals.append(pb.InputSignal.FromString(left[5 : 5 + size]))
        left = left[5 + size :]
    assert signals[0].start.expectedContentTypes == ["text/plain"]
    assert len(signals[0].start.inputNames) == 2
    assert [one.data.argIndex for one in signals[1:]] == [0, 1] * 3
    assert body.messages == 6
    reply = decoded(body.reply)
    assert reply is not None
    assert (reply.data.payload, dict(reply.data.headers)) == (b"abab", {"k": "v"})
    assert decoded(body.reply * 2) is None


def test_the_reply_bytes_are_calls_times_frames_times_frame_length() -> None:
    """One byte less, or more, is a wrong reply."""
    row = Row("any", "", 8, 40, Body(1000, b"x" * 16))
    frame_length = len(
        pb.OutputSignal(data=pb.OutputFrame(payload=b"x" * 16, contentType="text/plain")).SerializeToString()
    )
    right = 40 * 1000 * (5 + frame_length)
    check(row, right)
    for wrong in (right - 1, right + 1, 0):
        with pytest.raises(WrongReplyError, match=str(wrong)):
            check(row, wrong)


@pytest.mark.parametrize(("time", "seconds"), [("7.81ms", 0.00781), ("1.50s", 1.5), ("950us", 0.00095)])
def test_h2loads_report_is_read(time: str, seconds: float) -> None:
    """Seconds in any unit, and the bytes of data rather than those of the whole traffic."""
    assert parse(REPORT.format(time=time)) == (pytest.approx(seconds), 1_480_000)


def test_what_is_no_report_is_refused() -> None:
    """h2load that could not connect prints no figures."""
    with pytest.raises(ValueError, match="not a report"):
        parse("could not connect")


def test_rates_count_messages_or_calls() -> None:
    """A message is an InputFrame, of whichever input."""
    body = Body(500, b"x", inputs=2)
    assert Row("any", "", 8, 10, body).rate(2.0) == 5000
    assert Row("any", "", 8, 10, body, unit="calls/s").rate(2.0) == 5


def test_rows_can_be_made_up_but_not_misspelt() -> None:
    """STREAMSxBYTES is a row; fewer calls than streams are not."""
    row = row_named("3x2048")
    assert (row.streams, len(row.body.payload)) == (3, 2048)
    assert row_named("json").body.media_type == JSON
    assert row_named("held-calls").driver == "client"
    assert echo_row(64, 16).scaled(0.01).calls == 64
    with pytest.raises(ValueError, match="invalid literal"):
        row_named("jsonn")
    with pytest.raises(SystemExit, match="jsonn"):
        _chosen("8x16,jsonn", "")


def test_names_are_unique_and_every_column_has_its_function() -> None:
    """What a column says it serves is a function of benchmarks/functions.py or models.py."""
    names = [row.name for row in (*ROWS, *PEER_ROWS)]
    assert len(names) == len(set(names))
    for series in all_series(""):
        for row in (*ROWS, *PEER_ROWS):
            if series.base in STYLES and series.serves(row):
                entrypoint = next(word for word in series.command(row.work) if word.startswith("benchmarks."))
                module, _, name = entrypoint.partition(":")
                assert callable(getattr(import_module(module), name))


def test_columns_are_chosen_by_name_and_by_what_is_there() -> None:
    """A missing base or driver leaves its columns out; an unknown name ends the run."""
    assert [one.name for one in _columns("gen,bare", all_series(""), {})] == ["bare", "gen"]
    left = [one.name for one in _columns("", all_series("127.0.0.1:1"), dict.fromkeys(("cpp", "aio", *PEERS), "none"))]
    assert left == ["bare", *STYLES, "limit", "peer"]
    with pytest.raises(SystemExit, match="ben"):
        _columns("ben", all_series(""), {})


def test_medians_ranges_and_ratios() -> None:
    """One slow round changes neither median nor ratio."""
    assert spread([30_000.0, 10.0, 31_000.0]) == "30,000 (10-31,000)"
    assert spread([1234.4]) == "1,234"
    assert ratio([2.0, 200.0, 4.0], [1.0, 2.0, 90.0]) == 2.0
    cuts = summary([i / 1e6 for i in range(1, 1001)])
    assert cuts["p50"] == pytest.approx(500.5)
    assert cuts["p99"] == pytest.approx(990.99)


def test_a_table_divides_by_the_columns_that_were_measured() -> None:
    """A column that failed is left out, and a short line is filled up."""
    columns = all_series("")
    found = {("8x16", "bare"): {"rate": [10.0]}, ("8x16", "gen"): {"rate": [30.0]}}
    text = tables([row_named("8x16"), row_named("calls")], columns, found)
    assert "| sync generator | 30 | 3.00 |" in text
    assert "C++" not in text
    assert "calls" not in text
    assert table("T", ("a", "b"), [["x"]]).endswith("| x |  |")


def test_a_chart_is_svg_whose_bars_are_in_proportion() -> None:
    """The text of labels is escaped, the longest whisker ends within the picture."""
    bars = [Bar("a & b", "gen", 5, 10, 20), Bar("c", "bare", 5, 5, 5, pale=True)]
    root = ET.fromstring(chart("T <1>", "messages/s", [("group", bars)], digits=1))
    widths = [float(one.attrib["width"]) for one in root.iter(f"{SVG}rect")][1:]
    assert widths[0] == pytest.approx(2 * widths[1], abs=0.2)
    texts = [one.text for one in root.iter(f"{SVG}text")]
    assert {"T <1> (messages/s)", "a & b", "group", "10.0", "5.0"} <= set(texts)
    ends = [float(str(one.attrib["d"]).rpartition("H")[2]) for one in root.iter(f"{SVG}path")]
    assert max(ends) < float(root.attrib["width"])


def test_curves_are_drawn_between_their_bounds() -> None:
    """Each has a colour and a name; a value beyond the axis is drawn at its edge."""
    text = curves("A & B", "share", {"one": [0.5, 1.0], "two": [0.0, 2.0]}, low=0.5, high=1.0)
    assert "A &amp; B (share)" in text
    lines = re.findall(r'<polyline points="([^"]+)" fill="none" stroke="(#\w+)"', text)
    assert [points for points, _ in lines] == ["50.0,310.0 650.0,40.0"] * 2
    assert lines[0][1] != lines[1][1]
    assert [name in text for name in (">one<", ">two<")] == [True, True]


def test_a_run_leaves_results_and_plots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only plots that have figures are drawn, and only they are linked."""
    monkeypatch.setattr(results, "PLOTS", tmp_path / "plots")
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results.md")
    found = {("8x16", name): {"rate": [value, value]} for name, value in (("bare", 10.0), ("gen", 30.0))}
    draw([row_named("8x16"), row_named("ping1")], all_series(""), found)
    assert sorted(one.name for one in (tmp_path / "plots").iterdir()) == ["ratios.svg", "small-frames.svg"]
    assert "3.00" in (tmp_path / "plots" / "ratios.svg").read_text(encoding="utf-8")
    write(environment(2, ["no C++ echo"]))
    text = (tmp_path / "results.md").read_text(encoding="utf-8")
    assert "2 interleaved rounds" in text
    assert "left out: no C++ echo" in text
    assert "small-frames.svg" in text
    assert "latency" not in text


@pytest.fixture
def wire() -> Iterator[tuple[Connection, socket.socket]]:
    """Our client's connection and the server's end of it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connection = Connection(f"127.0.0.1:{listener.getsockname()[1]}")
        server, _ = listener.accept()
        with server:
            yield connection, server
        connection.close()


def test_the_client_counts_data_however_it_is_cut(wire: tuple[Connection, socket.socket]) -> None:
    """DATA in pieces of any size, trailers with a status, a ping that is answered."""
    connection, server = wire
    stream = connection.open(b"hello", half_close=True)
    stream.kept = bytearray()
    trailers = b"\x00\x0bgrpc-status\x010"
    said = frame(HEADERS, END_HEADERS, 1, b"\x88") + frame(DATA, 0, 1, b"abc") + frame(PING, 0, 0, b"12345678")
    said += frame(DATA, 0, 1, b"defg") + frame(HEADERS, END_HEADERS | END_STREAM, 1, trailers)
    for at in range(0, len(said), 5):
        server.sendall(said[at : at + 5])
        connection.turn(1)
    assert (stream.received, bytes(stream.kept), stream.status, stream.ended) == (7, b"abcdefg", "0", True)
    connection.flush()
    sent = server.recv(1 << 16)
    assert frame(DATA, END_STREAM, 1, b"hello") in sent
    assert frame(PING, ACK, 0, b"12345678") in sent


def test_the_client_keeps_to_the_servers_windows(wire: tuple[Connection, socket.socket]) -> None:
    """More than a window waits for WINDOW_UPDATE, of the connection and of the stream."""
    connection, server = wire
    stream = connection.open(bytes(DEFAULT_WINDOW + 10), half_close=True)
    connection.flush()
    assert sum(len(part) for part in stream.pending) == 10
    server.sendall(frame(WINDOW, 0, 0, (10).to_bytes(4, "big")))
    connection.turn(1)
    connection.flush()
    assert not stream.half_closed
    server.sendall(frame(WINDOW, 0, 1, (10).to_bytes(4, "big")))
    connection.turn(1)
    connection.flush()
    assert stream.half_closed
    assert not stream.pending


def test_the_client_fails_where_the_server_is_silent_or_gone(wire: tuple[Connection, socket.socket]) -> None:
    """No measurement hangs: silence, GOAWAY and a closed socket are errors."""
    connection, server = wire
    connection.flush()
    connection.flush()
    with pytest.raises(WireError, match="nothing could be sent"):
        connection.turn(0.01)
    server.sendall(frame(GOAWAY, 0, 0, bytes(7) + b"\x0btoo much"))
    with pytest.raises(WireError, match="too much"):
        connection.turn(1)
    server.shutdown(socket.SHUT_RDWR)
    with pytest.raises(WireError, match="closed"):
        connection.turn(1)


@pytest.mark.timeout(15)
def test_the_drivers_measure_a_bare_echo() -> None:
    """Loads and ping-pong verify what comes back, and refuse an answer to another question."""
    row = Row("small", "", 4, 8, Body(20, b"x" * 16))
    with serving(Series("bare", "", "bare").command("echo")) as (address, _):
        assert first_reply(address, row.body) == row.body.reply
        assert load(address, row) > 0
        assert len(pingpong(address, Body(1, b"x"), streams=2, count=40)) >= 36
        assert load(address, warmer(row_named("json"))) > 0
        if shutil.which("h2load"):
            assert h2load(address, row) > 0
            with pytest.raises(WrongReplyError, match="expected"):
                h2load(address, Row("zip", "", 1, 2, Body(20, b"x" * 16, inputs=2)))
        with pytest.raises(WrongReplyError, match="the reply is"):
            first_reply(address, Body(1, b"x", inputs=2))


def test_a_server_that_dies_says_why() -> None:
    """What it printed is in the error."""
    with pytest.raises(StartError, match="KeyError"), serving(Series("bare", "", "bare").command("nothing")):
        raise AssertionError("it cannot have started")


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: x\r\nContent-Length: 7\r\n\r\n"


def test_a_reply_is_read_by_its_length() -> None:
    """In whatever parts it comes; other statuses are no replies."""
    with _answering([HEAD[:10], HEAD[10:] + b"abc", b"defg"]) as address:
        with closing(Post(address, b"body")) as asker:
            got = asker.ask()
        assert (bytes(got.body), got.reply_bytes) == (b"abcdefg", len(HEAD) + 7)
    assert length(HEAD) == 7
    for head in (HEAD.replace(b"200", b"413"), b"HTTP/1.1 200 OK\r\n\r\n"):
        with pytest.raises(WrongReplyError, match="not a reply"):
            length(head)


def test_a_reply_that_is_cut_is_none() -> None:
    """The end of the connection is no end of a body."""
    with (
        _answering([HEAD + b"abc"]) as address,
        closing(Post(address, b"body")) as asker,
        pytest.raises(WrongReplyError, match="ended"),
    ):
        asker.ask()


@pytest.mark.parametrize("name", ["bare", "sync", "json"])
def test_a_tensor_that_comes_back_is_looked_into(name: str) -> None:
    """An echo, a response and nested lists; another tensor is a wrong reply."""
    way = next(one for one in WAYS if one.name == name)
    array = np.float32([[1, 2], [3, 4]])
    sent = way.body(array)
    reply = bytes(write_infer_response((to_tensor(array),))) if name == "sync" else sent
    way.check(Got(memoryview(reply), 0), array)
    with pytest.raises(WrongReplyError, match="not the expected tensor"):
        way.check(Got(memoryview(reply), 0), array + 1)


@pytest.mark.parametrize("work", sorted(WORK))
def test_endpoints_give_back_what_they_took(work: str) -> None:
    """Each of them."""
    body = b"[[1.0,2.5],[3.0,4.0]]"
    assert WORK[work](body).replace(b" ", b"") == body


@contextmanager
def _answering(parts: list[bytes]) -> Iterator[str]:
    """A server that answers one request with some bytes."""

    def answer() -> None:
        sock, _ = listener.accept()
        with sock:
            while not sock.recv(1 << 16).endswith(b"body"):
                pass
            for part in parts:
                sock.sendall(part)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def test_the_plot_of_the_readme_is_that_of_the_results() -> None:
    """Its bars are the medians that results.md has; a report without them is an error."""
    report = results.RESULTS.read_text()
    assert PLOT.read_text() == headline(report)
    assert all(one in headline(report) for one in ("11,839", "3,355", "10,136", "6,483")) == ("| 11,839 (" in report)
    with pytest.raises(KeyError):
        headline(report.replace("| sync request/reply |", "| gone |"))
