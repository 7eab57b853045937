"""What is kept for keys that peers choose."""

from invoker.core.cache import Cache


def test_what_is_kept_is_found_under_its_key() -> None:
    """Also None is an answer: nothing is kept there. Another value takes the place of the first."""
    kept: Cache[str, int] = Cache(2, 1000)
    assert kept.find("a") is None
    kept.keep("a", 1, 10)
    kept.keep("a", 2, 10)
    assert kept.find("a") == 2
    assert len(kept) == 1


def test_R011_a_flood_of_keys_pushes_out_only_what_nobody_uses() -> None:
    """There are two generations of at most so many; what is used in each generation stays."""
    kept: Cache[object, str] = Cache(4, 1000)
    kept.keep("used", "used", 1)
    kept.keep("idle", "idle", 1)
    for number in range(100):
        kept.keep(number, "other", 1)
        assert kept.find("used") == "used"
        assert len(kept) <= 8
    assert kept.find("idle") is None


def test_R011_what_is_kept_is_bounded_in_bytes() -> None:
    """Large values fill a generation sooner, and one that is larger than an eighth of it is not kept."""
    kept: Cache[int, str] = Cache(100, 1000)
    for number in range(100):
        kept.keep(number, "large", 125)
        assert len(kept) <= 16
    kept.keep(200, "too large", 126)
    assert kept.find(200) is None
