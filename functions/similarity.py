r"""Two array inputs whose shapes share a named size. Needs `pip install numpy`.

python -m invoker functions.similarity:similarity
python -m invoker call localhost:8081 --json --data '[[1, 0], [1, 1]]' --arg '1=[[0, 1]]'

Over GraphPipe both are sent in one request, by name or in this order; `size` can be any, but must be the same in both.
"""

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

Queries = Annotated[NDArray[np.float32], ("queries", "size"), "one vector a row"]
Items = Annotated[NDArray[np.float32], ("items", "size"), "one vector a row"]
Cosines = Annotated[NDArray[np.float32], ("queries", "items"), "1: the same direction; 0: none in common"]


def similarity(queries: Queries, items: Items) -> Cosines:
    """The cosine of the angle between each query and each item; for a vector of zeros it is 0."""
    return _unit(queries) @ _unit(items).T


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
