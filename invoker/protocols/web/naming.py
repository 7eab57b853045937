"""`bound`: finds the inputs for the names in a request, by the binder of the function.

Over HTTP a name has one value, or several if its input is a stream. The name of ``*args``, and each unknown name in a
form, stands for one element of ``*args`` (H-210); the binder knows elements by number, such as ``#0``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NoReturn

from invoker.author.binding import KEYWORD, Assignment
from invoker.errors import DecodeError
from invoker.errors.wording import normalised, twice, unknown
from invoker.protocols.web.fields import Signature

_WAYS = "; give it as the body, a query parameter, a field of a form or a member of a JSON object"


def bound(
    signature: Signature, names: Iterable[str], *, later: Collection[str] = (), hint: str = ""
) -> tuple[dict[str, int], Assignment]:
    """Bind names to inputs: returns the place of each name among the inputs, and the binder's result.

    Args:
        signature: The signature of the function.
        names: The name of each value; if the function takes any number of inputs, these come from `elements`.
        later: Names of inputs whose values will come later.
        hint: Text to append to the error about a missing value.

    Raises:
        DecodeError: A value is missing, unknown, or given twice.
    """
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    known = signature.known
    if signature.is_open:
        fixed = len(signature.inputs) - 1
        known = (*known[:fixed], *(name for name in counts if name[:1] == "#"), *known[fixed + 1 :])
    asked: list[str] = []
    for name in (*known, *(one for one in counts if one not in known)):
        count = counts.get(name, 0)
        if name in signature.streams or name in later or (signature.is_open and name[:1] == "#"):
            # a stream counts as given even if it is empty
            count = 1 if count or name in signature.inputs else 0
        asked += [name] * count
    found = signature.binder.named(asked)
    if found.faults:
        fault = found.faults[0]
        lacks = fault.code == "missing_arg" and fault.name in signature.inputs
        raise DecodeError(f"{fault}{_WAYS if lacks else ''}", hint=hint if lacks else "")
    return {name: place for place, name in enumerate(asked)}, found


def check_names(signature: Signature, names: Sequence[str], hint: str = "") -> None:
    """Refuse a name that no parameter takes, or that occurs twice; missing names are allowed.

    Args:
        signature: The signature of the function.
        names: The names that are given.
        hint: Text to append to the error.
    """
    faults = signature.binder.named(names).faults
    fault = next((one for one in faults if one.code != "missing_arg"), None)
    if fault is None:  # names that the binder takes, but a request cannot: ``*args`` after a default, and an empty name
        strangers = (one for one in names if not signature.takes(normalised(one)))
        fault = next((unknown(signature.name, one, signature.known) for one in strangers), None)
    if fault is not None:
        raise DecodeError(f"{fault}{hint}")


def refuse(signature: Signature, name: str, hint: str = "") -> NoReturn:
    """Refuse a value in a streamed body, whose name is not that of an input, or whose input already has its value.

    Raises:
        DecodeError: Always.
    """
    check_names(signature, [name], hint)
    raise DecodeError(f"{twice(signature.name, name)}{hint}")


def elements(signature: Signature, names: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """For a function with any number of inputs: the binder's name of each value, and by it the function's own name.

    Args:
        signature: The signature of the function.
        names: The name of each value; a name that is no parameter stands for an element of ``*args``, or belongs to
            ``**kwargs``.
    """
    own, taken = signature.inputs[-1], {*names}
    keys: list[str] = []
    labels: dict[str, str] = {}
    of_label: dict[str, str] = {}
    count = 0
    for name in names:
        if name != own and name in signature.known:
            keys.append(name)
            continue
        if name != own and signature.more is not None:
            keys.append(KEYWORD + name)
            labels[keys[-1]] = name
            continue
        label = name
        if signature.opens_values:
            while label in of_label or (label != name and label in taken):
                count += 1
                label = f"{own}{count}"
        key = of_label.setdefault(label, f"#{len(of_label)}")
        labels[key] = label
        keys.append(key)
    return keys, labels
