"""`SharedFrame`: one frame that several conversations send, such as the watches of one variable.

Each wire gets the same bytes. The wires own the frame, and `SharedFrames` has only a weak reference to it. So the frame
is freed without further calls once the last wire has sent it or is gone.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import final
from weakref import WeakValueDictionary


@final
class SharedFrame:
    """A frame that may be given to several wires.

    gRPC calls on the loop take one in place of bytes, and keep it until grpcio has sent it.

    Attributes:
        data: The frame.
    """

    __slots__ = ("__weakref__", "data")  # `bytes` itself, and what derives from it, has no weak references

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)


class SharedFrames:
    """Finds the newest frame of each key as long as it is being sent. All methods are called on one loop."""

    __slots__ = ("_frames",)

    def __init__(self) -> None:
        self._frames: WeakValueDictionary[Hashable, SharedFrame] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._frames)

    def join(self, key: Hashable, parts: Sequence[bytes]) -> SharedFrame:
        """The frame that consists of these parts: the newest one of ``key`` if it has the same bytes, or a new one."""
        shared = self._frames.get(key)
        if shared is None or not _consists(shared.data, parts):
            shared = self._frames[key] = SharedFrame(b"".join(parts))
        return shared


def _consists(data: bytes, parts: Sequence[bytes]) -> bool:
    """Whether data is the parts one after the other; compared in place, since joining them would make a copy."""
    start = 0
    for part in parts:
        if not data.startswith(part, start):
            return False
        start += len(part)
    return start == len(data)
