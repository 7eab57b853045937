"""A redis-server of the distribution's, for tests; without one they skip and say why."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


class RedisServer:
    """A server that listens on a Unix socket only and keeps nothing on disk."""

    def __init__(self, folder: Path) -> None:
        self.program = shutil.which("redis-server")
        if self.program is None:
            pytest.skip("redis-server is not installed")
        pytest.importorskip("redis", reason="the extra `redis` is not installed")
        self.path = folder / "redis.sock"
        self.url = f"unix://{self.path}"
        self.start()

    def start(self) -> None:
        """Start it, and return once it answers."""
        assert self.program is not None
        self.process = subprocess.Popen(
            [self.program, "--port", "0", "--unixsocket", str(self.path), "--save", "", "--dir", str(self.path.parent)],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        said = next((line for line in self.process.stdout if "ready to accept connections" in line), "")
        assert said, "redis-server has ended"

    def kill(self) -> None:
        """End it as a crash does; what it kept is gone."""
        self.process.kill()
        self.close()

    def close(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
