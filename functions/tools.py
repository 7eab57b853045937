"""Tools for a host program or an agent, with types, documentation, and rules for arguments.

python -m invoker functions.tools
python -m invoker inspect --tools functions.tools
python -m invoker call localhost:8081 --function count --data "to be or not to be"
"""

from __future__ import annotations

import asyncio
import datetime as dt
import enum
import statistics
import string
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from invoker import Context, Field, function, rule
from invoker.protocols import toolbridge


class Scale(enum.Enum):
    """Scales of temperature."""

    CELSIUS = "celsius"
    FAHRENHEIT = "fahrenheit"
    KELVIN = "kelvin"


@dataclass
class Summary:
    """The result of `summarize`."""

    count: int
    mean: float
    median: float
    deviation: float | None


@rule("isbn")
def is_isbn(text: str) -> bool:
    """Whether the last of the 13 digits of an ISBN is correct."""
    digits = [int(sign) for sign in text if sign != "-"]
    return len(digits) == 13 and (sum(digits[0::2]) + 3 * sum(digits[1::2])) % 10 == 0


@function
def count(text: str, unit: Literal["words", "characters", "lines"] = "words") -> int:
    """Count what a text consists of.

    Args:
        text: Any text.
        unit: What to count.

    Returns:
        How many there are.

    >>> count("to be or not to be")
    6
    """
    return len({"words": text.split, "lines": text.splitlines, "characters": lambda: text}[unit]())


@function
def convert(
    degrees: Annotated[float, Field(rules="finite")], scale: Scale = Scale.CELSIUS, to: Scale = Scale.KELVIN
) -> float:
    """Convert a temperature.

    Args:
        degrees: The temperature.
        scale: The scale that it is in.
        to: The scale that is wanted.

    >>> convert(20.0, "celsius", "fahrenheit")
    68.0
    """
    kelvin = {
        Scale.CELSIUS: degrees + 273.15,
        Scale.FAHRENHEIT: (degrees + 459.67) / 1.8,
        Scale.KELVIN: degrees,
    }[scale]
    found = {Scale.CELSIUS: kelvin - 273.15, Scale.FAHRENHEIT: kelvin * 1.8 - 459.67, Scale.KELVIN: kelvin}[to]
    return round(found, 9)


@function
def summarize(
    numbers: Annotated[list[float], Field(min_length=1, max_length=100_000, rules="finite")],
) -> Summary:
    """Summarize numbers.

    Args:
        numbers: At least one.
    """
    deviation = statistics.stdev(numbers) if len(numbers) > 1 else None
    return Summary(len(numbers), statistics.fmean(numbers), statistics.median(numbers), deviation)


@function
def days_until(
    day: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$", description="As 2026-12-24.")], since: str | None = None
) -> int:
    """Count the days until a day.

    Args:
        day: The day.
        since: The day to count from; today if it is left out.
    """
    start = dt.date.fromisoformat(since) if since else dt.datetime.now(dt.UTC).date()
    return (dt.date.fromisoformat(day) - start).days


@function(calls_per_minute=600)
def primes(below: Annotated[int, Field(ge=2, le=1_000_000)]) -> Iterator[int]:
    """Give prime numbers, one by one.

    Args:
        below: All that are less than this.
    """
    found: list[int] = []
    for number in range(2, below):
        if all(number % prime for prime in found if prime * prime <= number):
            found.append(number)
            yield number


@function(timeout_s=10, max_calls=100)
async def pause(seconds: Annotated[float, Field(ge=0, le=5)]) -> str:
    """Wait, and say for how long.

    Args:
        seconds: At most 5.
    """
    await asyncio.sleep(seconds)
    return f"waited {seconds:g} s"


@function
def fill(template: Annotated[str, Field(min_length=1)], **values: str) -> str:
    """Fill a template.

    Args:
        template: As "Dear $name".
        **values: What stands for each name.

    >>> fill("Dear $name", name="Bob")
    'Dear Bob'
    """
    return string.Template(template).substitute(values)


@function(options=[toolbridge.ToolInfo(cacheable=True)])
def book(isbn: Annotated[str, Field(rules="isbn")]) -> dict[str, str]:
    """Split an ISBN into its parts.

    Args:
        isbn: 13 digits, with hyphens or without.
    """
    digits = isbn.replace("-", "")
    return {"prefix": digits[:3], "digits": digits, "check": digits[-1]}


@function
def caller(context: Context) -> dict[str, str]:
    """Return the config that the host sent with this call."""
    return {str(name): str(value) for name, value in (context.config(dict) or {}).items()}
