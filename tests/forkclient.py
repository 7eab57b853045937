"""A ``python`` that is a fork of what `tests.forkserver` has imported, for whoever starts one by a command line.

``python -I -S forkclient.py PYTHON ADDRESS ARGS`` asks the process at the address, which forks, with the caller's
environment, folder and standard streams; passes signals on; and ends as the fork does. What a fork cannot show becomes
``PYTHON ARGS``. It imports nothing that Python has not loaded anyway, or that is not written in C: it takes 10 ms.
"""

import _signal
import _socket
import marshal
import os
import sys
from array import array

_PASSED = (_signal.SIGHUP, _signal.SIGINT, _signal.SIGTERM, _signal.SIGUSR1)


def main() -> None:
    """Ask, wait, and end."""
    python, address, *args = sys.argv[1:]
    opened = [one for one in range(3) if _is_open(one)]
    server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    server.connect(bytes.fromhex(address))
    request = {"args": args, "cwd": os.getcwd(), "env": dict(os.environ), "open": opened}  # noqa: PTH109 - nor is pathlib
    files = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array("i", opened))]
    _signal.pthread_sigmask(_signal.SIG_BLOCK, _PASSED)  # one that comes before its id is known must not be lost
    server.sendmsg([marshal.dumps(request)], files)
    if not (pid := int.from_bytes(server.recv(4), "big")):
        server.close()
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, _PASSED)
        os.execv(python, [python, *args])

    def passed_on(number: int, _: object) -> None:
        try:  # noqa: SIM105 - contextlib is not loaded
            os.kill(pid, number)
        except ProcessLookupError:
            pass

    for number in _PASSED:
        _signal.signal(number, passed_on)
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, _PASSED)
    if not (ending := server.recv(4)):
        sys.exit("the process that forks for tests has ended")
    if (code := int.from_bytes(ending, "big", signed=True)) < 0:
        if -code in _PASSED:
            _signal.signal(-code, _signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


main()
