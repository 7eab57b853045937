"""The table of services."""

from __future__ import annotations

import subprocess
import sys


def test_a_process_without_a_protocol_does_not_load_it():
    """Neither its modules nor what it is translated with."""
    code = (
        "import asyncio, sys; from invoker.cli.main import build; from invoker.config import Config\n"
        "async def main():\n"
        "    config = Config(host='127.0.0.1', grpc_port=0, http=False, protocols=(sys.argv[1],))\n"
        "    server = build(config, 'functions.add')\n"
        "    await server.start(); await server.stop(drain_s=0)\n"
        "asyncio.run(main())\n"
        "print(*sorted({name.split('.')[2] for name in sys.modules if name.startswith('invoker.protocols.')}))"
    )
    for protocol in ("riff", "evergreen"):
        shown = subprocess.run([sys.executable, "-c", code, protocol], check=True, capture_output=True, text=True)
        assert shown.stdout.split() == [protocol]
