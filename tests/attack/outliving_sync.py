"""Those of `tests.attack.outliving` that are sync: a process without async functions serves calls in other ways."""

from __future__ import annotations

from tests.attack.outliving import echo, echoes, give, gives, held, tensor

__all__ = ["echo", "echoes", "give", "gives", "held", "tensor"]
