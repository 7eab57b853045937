"""`invoker.protocols.federated.client.cache`: what is kept, and for how long."""

from __future__ import annotations

from pathlib import Path

import pytest

from invoker.protocols.federated.client import cache as cache_module
from invoker.protocols.federated.client.cache import Cache, Entry

BODY = Entry(b"body\nof two lines", "application/octet-stream+gzip")


@pytest.mark.parametrize("has_folder", [False, True])
def test_F072_what_is_kept_expires(tmp_path: Path, has_folder: bool) -> None:
    """Under its id, until its age is reached; in a folder it survives the program."""
    clock = [100.0]
    folder = tmp_path / "deep" / "cache" if has_folder else None
    cache = Cache(folder, lambda: clock[0])
    assert cache.get("a") is None
    cache.put("a", BODY, 10)
    cache.put("../b", Entry(b"other"), 100)
    cache.put("never", BODY, 0)
    assert (cache.get("a"), cache.get("../b"), cache.get("never")) == (BODY, Entry(b"other"), None)
    if folder is not None:
        cache = Cache(folder, lambda: clock[0])
        assert len(list(folder.iterdir())) == 2
    clock[0] = 109.9
    assert cache.get("a") == BODY
    clock[0] = 110.0
    assert cache.get("a") is None
    assert cache.get("../b") == Entry(b"other")
    cache.put("c", BODY, 1)
    if folder is not None:
        assert len(list(folder.iterdir())) == 2  # what is too old was swept out


def test_F072_a_cache_that_fails_is_as_an_empty_one(tmp_path: Path) -> None:
    """A file in the place of its folder, and files that are cut off or no entries, do no harm."""
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    cache = Cache(blocked, lambda: 0.0)
    cache.put("a", BODY, 10)
    assert cache.get("a") is None
    cache = Cache(tmp_path / "folder", lambda: 0.0)
    cache.put("a", BODY, 10)
    (path,) = (tmp_path / "folder").iterdir()
    whole = path.read_bytes()
    for content in (whole[:-1], b"", b"[]\n", b"\xff\n", b'{"expires": "x", "size": 0}\n', b'{"expires": 9}\nabc'):
        path.write_bytes(content)
        assert cache.get("a") is None
        cache.put("b", BODY, 10)
        assert cache.get("b") == BODY


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest entries make room."""
    monkeypatch.setattr(cache_module, "MOST_BYTES", 250)
    cache = Cache(None, lambda: 0.0)
    for name in "abc":
        cache.put(name, Entry(bytes(100)), 10)
    assert [cache.get(name) is None for name in "abc"] == [True, False, False]
    cache.put("d", Entry(bytes(300)), 10)
    assert [cache.get(name) is None for name in "abcd"] == [True] * 4
