"""Ids of sessions and keys of masks: `invoker.protocols.federated.wire.derive`."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from invoker.protocols.federated.wire.derive import mask_key, session_id
from tests.protocols.federated.secagg import model

ONE = bytes.fromhex("026ff03b949241ce1dadd43519e6960e0a85b41a69a05c328103aa2bce1594ca16")
TWO = bytes.fromhex("02550f471003f3df97c3df506ac797f6721fb1a1fb7b8f6f83d224498a65c88e24")
FOREIGN = [
    (
        "0259aeda63828cf79c460cf84d3bc1507d089029b786432aab66f3fd5ab2c08c28",
        "026d03439c8f221f157bec7ee5479bbf7e92901e546b6cdc43a14c6eae13cd6b5d",
    ),
    (
        "0213cbb7d98919da666e381d5178a18f024be522b0ff3a997e92a62c9a3f186d1a",
        "0384a3d65b49bbd6c1deac58c0da81dcf913e91112d3f99c60c1ea70a90b528f49",
    ),
]


def test_F096_session_ids_are_those_of_the_catalogue() -> None:
    """Two pairs, a pair and a dead device, and the pairs of the foreign implementation's own test."""
    both = "69ea584f4ef717d2db846ffb482d81e2882e8bde9ba3933553a2f2fa374a842c"
    assert session_id([(ONE, TWO), (TWO, ONE)]).hex() == both
    dead = "b4d090ac2d7cbf0f00ff0f7e0224a1f39580cb7eb7cc40144259de82d5c953de"
    assert session_id([(ONE, TWO), (b"", b"")]).hex() == dead
    foreign = [(bytes.fromhex(noise), bytes.fromhex(enc)) for noise, enc in FOREIGN]
    assert session_id(foreign).hex() == "78af6ed21e6fc5e7fd23a3199fcc504fadb41ba6533555a1e4e86114f23e8e72"


def test_F096_mask_keys_are_those_of_the_catalogue() -> None:
    """The vector whose key the catalogue tells."""
    key = mask_key(bytes(range(32)), session=b"\xaa" * 32, modulus=256, length=4, name="test")
    assert key.hex() == "7653c44c5ad7ac1c6b7d01656b3221f4dcb83c6f7d0c795cbd97ffc605f74b7e"


@settings(deadline=None)
@given(st.binary(min_size=32, max_size=32), st.integers(2, 2**62), st.integers(1, 2**31), st.text(max_size=20))
def test_F096_mask_keys_are_those_of_the_slow_model(key: bytes, modulus: int, length: int, name: str) -> None:
    """For every modulus, length and name."""
    found = mask_key(key, session=b"s" * 32, modulus=modulus, length=length, name=name)
    assert found == model.mask_key(key, b"s" * 32, modulus, length, name)
