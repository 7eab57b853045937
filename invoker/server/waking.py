"""`Waker`: makes the main thread run Python's handler of each signal, even when it blocks.

Theory. Python's own handler of a signal runs in the main thread, when that next runs bytecode; the system's handler
only notes the signal. While a function of the author waits, for example in ``time.sleep``, a noted signal is delayed in
two cases: it came between Python's last check and the system call, or the system gave it to another thread, so that the
call was not interrupted. But the system's handler also writes to the descriptor of ``signal.set_wakeup_fd``, in
whatever thread it runs. So a thread reads that descriptor, and interrupts the main thread by SIGURG, which is used for
nothing else here. It repeats this until the handler of SIGURG has run; by then, the handlers of all earlier signals
have run too. The bytes are passed on to the descriptor that was set before, the event loop's.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Iterable

_POKE: signal.Signals = signal.SIGURG
_FIRST_S, _LAST_S = 0.02, 1.0
"""Seconds before the main thread is interrupted once more if no handler has run: the first wait, and the longest."""


class Waker:
    """Wakes the main thread for signals; it is started and closed in the main thread."""

    def __init__(self) -> None:
        self._has_looked = threading.Event()
        self._numbers = b""
        self._ours: socket.socket | None = None
        self._theirs: socket.socket | None = None
        self._onward = -1

    def start(self, numbers: Iterable[int]) -> None:
        """Start the thread, after the loop has set its descriptor.

        If no thread can be started, Python's own handling of signals remains.

        Args:
            numbers: The numbers of the signals for which the main thread is interrupted.
        """
        if signal.getsignal(_POKE) is not signal.SIG_DFL:
            return  # the author's code uses SIGURG
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        thread = threading.Thread(target=self._run, args=(ours,), name="invoker-guard", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            ours.close()
            theirs.close()
            return
        self._ours, self._theirs = ours, theirs
        self._numbers = bytes(numbers)
        signal.signal(_POKE, lambda *_: self._has_looked.set())
        self._onward = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)

    def close(self) -> None:
        """End the thread, and give the descriptor back."""
        ours, theirs, self._ours, self._theirs = self._ours, self._theirs, None, None
        if ours is None or theirs is None:
            return
        if (now := signal.set_wakeup_fd(-1)) != theirs.fileno():
            signal.set_wakeup_fd(now, warn_on_full_buffer=False)  # other code has set another descriptor by now
        else:
            signal.set_wakeup_fd(self._onward, warn_on_full_buffer=False)
        signal.signal(_POKE, signal.SIG_DFL)
        self._has_looked.set()
        theirs.close()

    def _run(self, ours: socket.socket) -> None:
        main = threading.main_thread().ident
        assert main is not None, "the main thread runs"
        with ours:
            while came := ours.recv(64):
                with contextlib.suppress(OSError):
                    if self._onward >= 0:
                        os.write(self._onward, came)
                if any(one in self._numbers for one in came):
                    self._interrupt(main)

    def _interrupt(self, main: int) -> None:
        self._has_looked.clear()
        wait_s = _FIRST_S
        while self._theirs is not None:
            signal.pthread_kill(main, _POKE)
            if self._has_looked.wait(wait_s):
                return
            wait_s = min(2 * wait_s, _LAST_S)
