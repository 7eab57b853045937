"""A class: it is instantiated and entered once per process, called for each message, and left at the end.

python -m invoker functions.model:Model
python -m invoker call localhost:8081 --data 'good bad good'
"""

from types import TracebackType
from typing import Self


class Model:
    """Scores texts by a list of words that is loaded once."""

    def __enter__(self) -> Self:
        self.words = {"good": 1, "bad": -1}
        return self

    def __call__(self, text: str) -> int:
        """The sum of the scores of its words."""
        return sum(self.words.get(word, 0) for word in text.split())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.words.clear()
