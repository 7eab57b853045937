"""``python -m benchmarks``: messages/s and calls/s against a bare grpc.aio echo, start-up time, memory.

The server is pinned to core 0 and the driver (h2load, from the package nghttp2-client) to core 1 where taskset is
there. All cases of a round run one after another, rounds are repeated, and the median of each case is divided by the
median of the bare echo's.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc.aio

from invoker._pb.riff import riff_rpc_pb2 as pb

_READY = re.compile(r"grpc=(\S+)")
_CASES = ("bare", "agen", "areply", "gen", "reply")


def main() -> int:
    """Run everything and print Markdown; 1 when h2load is missing."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--quick", action="store_true", help="a tenth of the calls")
    args = options.parse_args()
    scale = 0.1 if args.quick else 1.0
    _print_start()
    if shutil.which("h2load") is None:
        print("h2load is missing (Debian: nghttp2-client): no throughput was measured", file=sys.stderr)
        return 1
    _print_throughput(args.rounds, scale)
    asyncio.run(_print_memory())
    return 0


def _pinned(core: int, command: list[str]) -> list[str]:
    return ["taskset", "-c", str(core), *command] if shutil.which("taskset") else command


@contextmanager
def _server(case: str) -> Iterator[tuple[str, int]]:
    """A server for one case: its address and process id."""
    command = [sys.executable, "-m", "benchmarks.bare"]
    if case != "bare":
        command = [
            sys.executable,
            "-m",
            "invoker",
            f"benchmarks.functions:{case}",
            "--host",
            "127.0.0.1",
            "--grpc-port",
            "0",
        ]
        command += ["--port", "0"]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(_pinned(0, command), stdout=log, stderr=log)
        try:
            yield _address(process, log), process.pid
        finally:
            process.kill()
            process.wait()


def _address(process: subprocess.Popen[bytes], log: object) -> str:
    until = time.monotonic() + 30
    while time.monotonic() < until and process.poll() is None:
        log.seek(0)  # type: ignore[attr-defined]
        found = _READY.search(log.read())  # type: ignore[attr-defined]
        if found:
            return found[1]
        time.sleep(0.02)
    raise SystemExit("a server did not start")


def _framed(signal: pb.InputSignal) -> bytes:
    data = signal.SerializeToString()
    return b"\0" + len(data).to_bytes(4, "big") + data


def _body(frames: int, size: int) -> bytes:
    start = pb.InputSignal(start=pb.StartFrame(expectedContentTypes=["text/plain"]))
    data = pb.InputSignal(data=pb.InputFrame(payload=b"x" * size, contentType="text/plain"))
    return _framed(start) + _framed(data) * frames


def _expected(frames: int, size: int) -> int:
    frame = pb.OutputSignal(data=pb.OutputFrame(payload=b"x" * size, contentType="text/plain")).SerializeToString()
    return frames * (5 + len(frame))


def _load(address: str, *, streams: int, calls: int, frames: int, size: int) -> float:
    """Seconds that h2load needs; every reply byte is counted, since h2load looks at the HTTP status only."""
    with tempfile.NamedTemporaryFile() as body:
        body.write(_body(frames, size))
        body.flush()
        command = ["h2load", "-c", "1", "-m", str(streams), "-n", str(calls), "-d", body.name]
        command += [
            "-H",
            "content-type: application/grpc",
            "-H",
            "te: trailers",
            f"http://{address}/streaming.Riff/Invoke",
        ]
        text = subprocess.run(_pinned(1, command), capture_output=True, text=True, check=True).stdout
    seconds, unit = re.search(r"finished in ([0-9.]+)(ms|s|us)", text).groups()  # type: ignore[union-attr]
    data = int(re.search(r"\((\d+)\) data", text)[1])  # type: ignore[index]
    if data != calls * _expected(frames, size):
        raise SystemExit(f"{data} reply bytes came, {calls * _expected(frames, size)} were expected\n{text}")
    return float(seconds) * {"s": 1, "ms": 1e-3, "us": 1e-6}[unit]


def _print_throughput(rounds: int, scale: float) -> None:
    plans = [
        (f"messages/s, {size} B, {streams} stream(s)", streams, max(streams, int(count * scale)), 1000, size)
        for streams, count, size in ((1, 20, 16), (8, 40, 16), (64, 64, 16), (8, 24, 1024))
    ]
    plans.append(("calls/s, 1 frame, 64 in flight", 64, int(6000 * scale), 1, 16))
    found: dict[tuple[str, str], list[float]] = {}
    for _ in range(rounds):
        for case in _CASES:
            with _server(case) as (address, _):
                _load(address, streams=8, calls=8, frames=100, size=16)  # warm
                for title, streams, calls, frames, size in plans:
                    seconds = _load(address, streams=streams, calls=calls, frames=frames, size=size)
                    found.setdefault((title, case), []).append(calls * frames / seconds)
    print("\n| case | bare grpc.aio echo | " + " | ".join(_CASES[1:]) + " |\n|--|" + "--|" * len(_CASES))
    for title, *_ in plans:
        bare = statistics.median(found[title, "bare"])
        cells = [f"{bare:,.0f} ({min(found[title, 'bare']):,.0f}-{max(found[title, 'bare']):,.0f})"]
        for case in _CASES[1:]:
            rates = found[title, case]
            cells.append(
                f"{statistics.median(rates):,.0f} = {statistics.median(rates) / bare:.2f}x "
                f"({min(rates):,.0f}-{max(rates):,.0f})"
            )
        print(f"| {title} | " + " | ".join(cells) + " |")


def _print_start() -> None:
    imports, ready, resident = [], [], []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import invoker"], check=True)
        whole = time.perf_counter() - began
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        imports.append(whole - (time.perf_counter() - began))
        began = time.perf_counter()
        with _server("agen") as (_, pid):
            ready.append(time.perf_counter() - began)
            resident.append(_resident(pid))
    print("| figure | median | range |\n|--|--|--|")
    for title, values, unit in (("import invoker", imports, "ms"), ("process start to ready line", ready, "ms")):
        print(
            f"| {title} | {statistics.median(values) * 1e3:.0f} {unit} "
            f"| {min(values) * 1e3:.0f}-{max(values) * 1e3:.0f} |"
        )
    print(f"| resident when idle | {statistics.median(resident):.0f} MiB | {min(resident):.0f}-{max(resident):.0f} |")


def _resident(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024  # type: ignore[index]


async def _print_memory() -> None:
    """A client that never reads, and one that sends 1 GiB to a function that sleeps."""
    with _server("flood") as (address, pid):
        before = _resident(pid)
        async with grpc.aio.insecure_channel(address) as channel:
            call = channel.stream_stream("/streaming.Riff/Invoke")()
            await call.write(pb.InputSignal(start=pb.StartFrame(expectedContentTypes=["*/*"])).SerializeToString())
            await asyncio.sleep(5)
            print(f"| a client that never reads, 64 KiB outputs, after 5 s | {_resident(pid) - before:+.0f} MiB | |")
            call.cancel()
    with _server("sleeper") as (address, pid):
        before = _resident(pid)
        async with grpc.aio.insecure_channel(address) as channel:
            call = channel.stream_stream("/streaming.Riff/Invoke")()
            await call.write(pb.InputSignal(start=pb.StartFrame(expectedContentTypes=["*/*"])).SerializeToString())
            frame = pb.InputSignal(data=pb.InputFrame(payload=bytes(1 << 20))).SerializeToString()
            sent = 0
            try:
                async with asyncio.timeout(10):
                    for _ in range(1024):
                        await call.write(frame)
                        sent += 1
            except TimeoutError:
                pass
            print(
                f"| 1 GiB sent to a sleeping function ({sent} MiB taken, then the client blocked) "
                f"| {_resident(pid) - before:+.0f} MiB | |"
            )
            call.cancel()


if __name__ == "__main__":
    sys.exit(main())
