"""Removes the masks from a sum: recovers secrets from shares, and computes the masks that are still in it.

The sum contains the own mask of each device in it; its peers have shares of the mask's key. A device that sent shares
and then no vector is missing in the sum, but its peers have added the masks that they share with it; they have shares
of its noise key. The two keys of a device are never both known, so no vector of one device can be unmasked.

Shares may be wrong, because a device lies. The recovered secrets are checked (F-127, F-128, F-135): noise keys
must give the public keys that were advertised, limbs must be possible, and all remaining shares must lie on the same
polynomials.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from invoker.protocols.federated.wire.derive import mask_key
from invoker.protocols.federated.wire.keys import KEY_BYTES, KeyPair, public_of
from invoker.protocols.federated.wire.masks import add_masks
from invoker.protocols.federated.wire.shares import combine, join, weights

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, Any]

_MOST_SUBSETS: Final = 500
"""How many subsets of shares are tried before a round is given up."""


class Cohort(msgspec.Struct, frozen=True):
    """The devices that are in the sum, and the missing ones, once vectors have been summed up.

    Attributes:
        session: Id of the session.
        noise: The advertised noise key of each device, by index; empty: it never took part.
        included: Indices of devices in the sum, ascending.
        missing: Indices of devices that sent shares and are not in the sum, ascending.
    """

    session: bytes
    noise: Sequence[bytes]
    included: Sequence[int]
    missing: Sequence[int]


class Secrets(msgspec.Struct, frozen=True):
    """The keys of the own masks of the devices in the sum, and the noise keys of the missing ones, in order."""

    own: Sequence[bytes]
    noise: Sequence[bytes]


def recover(cohort: Cohort, replies: Mapping[int, Array], threshold: int) -> Secrets | None:
    """Put the secrets together; None if the shares are corrupt, which more shares may mend.

    Args:
        cohort: The devices that are in the sum, and those that are missing.
        replies: By index of the device that sent them, shares of the included and then of the missing devices:
            (devices, limbs) of uint32.
        threshold: How many replies are needed; there are at least as many.
    """
    for subset in itertools.islice(_subsets(sorted(replies), threshold), _MOST_SUBSETS):
        if (secrets := _recovered(cohort, replies, subset)) is not None:
            return secrets if _all_agree(cohort, replies, subset) else None
    return None


def unmask(
    cohort: Cohort,
    secrets: Secrets,
    sums: Mapping[str, Array],
    vectors: Mapping[str, tuple[int, int]],
    *,
    stopped: Callable[[], bool],
) -> dict[str, Array]:
    """Take all masks off the sums.

    Returns:
        By name, (length,) of uint64 below the modulus.
    """
    import numpy as np

    plus, minus = _left_masks(cohort, secrets, stopped)
    unmasked = {}
    for name, (modulus, length) in vectors.items():
        added, taken = (
            add_masks(
                [mask_key(key, session=cohort.session, modulus=modulus, length=length, name=name) for key in keys],
                modulus,
                length,
                stopped=stopped,
            )
            for keys in (plus, minus)
        )
        # all three are below the modulus, which is at most 2^62, so there is no overflow before the remainder
        unmasked[name] = (sums[name] + added + (np.uint64(modulus) - taken)) % np.uint64(modulus)
    return unmasked


def _left_masks(cohort: Cohort, secrets: Secrets, stopped: Callable[[], bool]) -> tuple[list[bytes], list[bytes]]:
    """Keys of the masks that must be added to the sum, and keys of the masks that must be subtracted."""
    plus, minus = list[bytes](), list(secrets.own)
    for dead, secret in zip(cohort.missing, secrets.noise, strict=True):
        if stopped():
            break
        pair = KeyPair(secret)
        for index in cohort.included:
            # A device has added the masks that it shares with devices before it, and subtracted the others.
            (plus if dead > index else minus).append(pair.agree(cohort.noise[index]))
    return plus, minus


def _subsets(replied: Sequence[int], threshold: int) -> Iterator[Sequence[int]]:
    """Subsets of replies to try.

    The first replies by index are tried first (F-127); then neighbours of them without each device; then all others.

    Then neighbours, some without each device; then all others.
    """
    if len(replied) == threshold:
        return iter((replied,))
    twice = [*replied, *replied]
    turned = (sorted(twice[start : start + threshold]) for start in range(len(replied)))
    return itertools.chain(turned, itertools.combinations(replied, threshold))


def _recovered(cohort: Cohort, replies: Mapping[int, Array], subset: Sequence[int]) -> Secrets | None:
    """The secrets from one subset of replies, if they are consistent."""
    import numpy as np

    limbs = combine(weights(subset), np.stack([replies[index] for index in subset]))
    secrets = [join(row, KEY_BYTES) for row in limbs]
    known = [secret for secret in secrets if secret is not None]
    if len(known) < len(secrets):
        return None
    own, noise = known[: len(cohort.included)], known[len(cohort.included) :]
    if any(public_of(key) != cohort.noise[dead] for dead, key in zip(cohort.missing, noise, strict=True)):
        return None
    return Secrets(own, noise)


def _all_agree(cohort: Cohort, replies: Mapping[int, Array], subset: Sequence[int]) -> bool:
    """Whether the remaining replies are consistent.

    A device whose noise shares are wrong is known to lie, so its reply is ignored.
    """
    import numpy as np

    left = [index for index in replies if index not in subset]
    if not left:
        return True
    shares = np.stack([replies[index] for index in subset])
    count = len(cohort.included)
    for index in left:
        does_fit = (combine(weights(subset, at=index + 1), shares) == replies[index]).all(axis=1)
        if does_fit[count:].all() and not does_fit[:count].all():
            return False
    return True
