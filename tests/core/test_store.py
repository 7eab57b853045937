"""News of a space: what waits, in which order, and how little of it for who does not take it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from invoker.core import store
from invoker.core.store import Change, News, Reason, Refused


def made(*names: str, told: list[News] | None = None) -> News:
    return News("s", names or None, ([] if told is None else told).append)


def taken(news: News) -> list[Change | Refused]:
    return list(iter(news.take, None))


def test_news_are_taken_in_order_and_told_once_until_they_are() -> None:
    """Who was told and has not taken all needs not be told again."""
    told: list[News] = []
    news = made(told=told)
    one, two = Change("a", b"1", 1, is_new=True), Change("b", b"2", 2, is_new=True)
    news.put(one)
    news.put(two)
    assert told == [news]
    assert taken(news) == [one, two]
    assert news.take() is None
    news.put(one)
    assert told == [news, news]


def test_only_items_of_interest_are_told() -> None:
    """The end of the space always is, and nothing follows it."""
    news = made("a")
    for name in "ab":
        news.put(Change(name, b"x", 1))
    news.put(Refused(Reason.EXPIRED))
    news.put(Change("a", b"y", 2))
    assert taken(news) == [Change("a", b"x", 1), Refused(Reason.EXPIRED)]
    nothing = News("s", (), [].append)
    nothing.put(Change("a", b"x", 1))
    assert nothing.take() is None


@given(st.lists(st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.binary(max_size=8))), max_size=60))
def test_who_takes_slowly_ends_with_the_same_state(written: list[tuple[str, bytes | None]]) -> None:
    """Whatever was joined; the deletion of an item that was there is not lost."""
    joined = made()
    joined._mark = (4, 40)
    truth: dict[str, bytes] = {}
    for number, (name, value) in enumerate(written):
        joined.put(Change(name, value, number, is_new=name not in truth))
        truth.pop(name, None)
        if value is not None:
            truth[name] = value
        assert len(joined._changes) <= max(store._NEWS, 4)
    seen: dict[str, bytes] = {}
    versions = []
    for change in taken(joined):
        assert isinstance(change, Change)
        assert change.is_new is (change.name not in seen) or change.value is None
        versions.append(change.updated_ns)
        seen.pop(change.name, None)
        if change.value is not None:
            seen[change.name] = change.value
    assert seen == truth
    assert versions == sorted(versions)
    assert joined._size == 0


def test_what_waits_is_bounded() -> None:
    """By the number of items and by their bytes; then by the items that there are."""
    many, large = made(), made()
    for number in range(10_000):
        many.put(Change(f"{number % 7}", b"x", number))
        large.put(Change("a", bytes(1 << 20), number))
        assert len(many._changes) <= store._NEWS
        assert large._size <= store._NEWS_BYTES
    assert [one.updated_ns for one in taken(many)][-1] == 9999
