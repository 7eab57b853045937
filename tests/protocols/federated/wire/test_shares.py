"""Shares of secrets: `invoker.protocols.federated.wire.shares`."""

from __future__ import annotations

import itertools
import os
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from invoker.protocols.federated.wire import shares as module
from invoker.protocols.federated.wire.shares import PRIME, SHARE_BYTES, combine, join, split, stack, weights
from tests.protocols.federated.secagg import model

COUNTING = bytes(range(1, 33))
JAVA = ["70cf762e6ed4aa1c", "30a0c5ac26eb91cc", "3f73ee902844b747", "1d48f0cf72e01a8d", "4a1fcc7406bdbb88"]


def restored(shares: dict[int, bytes], size: int) -> bytes | None:
    """The secret of shares by list index."""
    return join(combine(weights(list(shares)), stack(list(shares.values()))), size)


def test_F096_limbs_and_polynomials_are_those_of_the_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    """With all higher coefficients 7 and a threshold of 3, share 0 is limb + 14."""
    monkeypatch.setattr(module, "_uniform", lambda rows, columns: np.full((rows, columns), 7, np.uint64))
    first, second = split(COUNTING, threshold=3, count=5)[:2]
    assert first.hex() == "0000000f010182104181c2102141618f50e0f10f089098ae54585c6e323436461d1e1f2e"
    limbs = [0x1, 0x1018202, 0x4181C202, 0x21416181, 0x50E0F101, 0x89098A0, 0x54585C60, 0x32343638, 0x1D1E1F20]
    assert stack([first])[0].tolist() == [limb + 7 + 7 for limb in limbs]
    assert stack([second])[0].tolist() == [limb + 7 * 2 + 7 * 4 for limb in limbs]


def test_F096_every_three_shares_of_the_java_clients_give_their_secret_back() -> None:
    """These shares are from the tests of the foreign implementation."""
    known = {index: bytes.fromhex(share) for index, share in enumerate(JAVA)}
    for chosen in itertools.combinations(known, 3):
        assert restored({index: known[index] for index in chosen}, 4) == bytes([0, 0, 0, 0x21])


@settings(deadline=None, max_examples=40)
@given(st.binary(min_size=1, max_size=40), st.integers(1, 12), st.data())
def test_F096_any_threshold_of_shares_gives_the_secret_back(secret: bytes, threshold: int, data: st.DataObject) -> None:
    """Whichever devices they are of; the slow model agrees."""
    count = data.draw(st.integers(threshold, 20))
    shares = split(secret, threshold=threshold, count=count)
    assert {len(share) for share in shares} == {4 * -(-8 * len(secret) // 31)}
    chosen = data.draw(st.permutations(range(count)))[:threshold]
    some = {index: shares[index] for index in chosen}
    assert restored(some, len(secret)) == secret == model.secret(some, len(secret))


def test_fewer_shares_than_the_threshold_are_of_no_use() -> None:
    """Two of three shares give something else, and every time something else."""
    found = set()
    for _ in range(20):
        shares = split(COUNTING, threshold=3, count=5)
        found.add(combine(weights([0, 1]), stack(shares[:2])).tobytes())
        assert restored(dict(enumerate(shares[:2])), 32) != COUNTING
    assert len(found) == 20


def test_F128_weights_for_another_point_give_the_share_there() -> None:
    """So a share that is left over shows whether it fits the rest."""
    shares = split(COUNTING, threshold=4, count=9)
    for index in range(9):
        value = combine(weights([8, 2, 5, 3], at=index + 1), stack([shares[at] for at in (8, 2, 5, 3)]))
        assert value.astype(">u4").tobytes() == shares[index]


def test_combine_takes_the_shares_of_many_secrets_at_once() -> None:
    """An array (shares, secrets, limbs), as the server has it."""
    secrets = [os.urandom(32) for _ in range(6)]
    table = np.stack([stack(split(secret, threshold=3, count=5)) for secret in secrets], axis=1)
    limbs = combine(weights([4, 0, 2]), table[[4, 0, 2]])
    assert [join(row, 32) for row in limbs] == secrets
    assert [join(row, 32) for row in combine(weights([4, 0, 2]), table[[4, 0, 2]].astype(np.uint32))] == secrets


def test_F135_limbs_that_no_secret_has_are_refused() -> None:
    """A limb of 32 bits, a first limb beyond 8 bits; the largest secret is still one."""
    most = np.array([255, *[2**31 - 1] * 8], np.uint64)
    assert join(most, 32) == b"\xff" * 32
    for place in range(9):
        wrong = most.copy()
        wrong[place] += 1
        assert join(wrong, 32) is None
    assert join(np.array([256, *[0] * 8], np.uint64), 32) is None


def test_F096_coefficients_are_spread_over_the_whole_field() -> None:
    """Each of 16 parts of it is met about equally often, and none reaches the prime."""
    drawn = module._uniform(400, 40)
    assert drawn.shape == (400, 40)
    assert int(drawn.max()) < PRIME
    counts = np.bincount((drawn.reshape(-1) * 16 // PRIME).astype(np.int64), minlength=16)
    assert counts.min() > 800
    assert counts.max() < 1200


def test_a_thousand_devices_are_shared_among_in_a_moment() -> None:
    """The largest round that is aimed at: 1,000 devices, of which 667 must survive."""
    before = time.perf_counter()
    shares = split(COUNTING, threshold=667, count=1000)
    took = time.perf_counter() - before
    assert {len(share) for share in shares} == {SHARE_BYTES}
    chosen = list(range(333, 1000))
    assert restored({index: shares[index] for index in chosen}, 32) == COUNTING
    assert took < float(os.environ.get("INVOKER_TEST_SLOW", "1"))
