"""One seed: its conversations together on a loop, then each one alone in every world, whose answers must agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tests.simulate.compare import compare
from tests.simulate.loop_world import in_loop
from tests.simulate.peer import Ending
from tests.simulate.scene import draw_scene
from tests.simulate.seen import Violation, Witness
from tests.simulate.thread_world import in_thread
from tests.simulate.whole_world import in_whole


def simulate(seed: int, *, say: Callable[[str], None] | None = None) -> Counter[str]:
    """Run one seed to its end.

    Args:
        seed: Decides everything but the turns that the real threads of several outputs take.
        say: Is told each step.

    Returns:
        How the conversations ended.

    Raises:
        Violation: An invariant does not hold, or two worlds disagree; the text names the seed and the last steps.
    """
    witness = Witness(draw_scene(seed), say)
    statuses = Counter[str]()
    try:
        numbers = list(range(len(witness.scene.plans)))
        statuses.update(one.status for one in in_loop(witness, numbers))
        for number in numbers:
            alone = in_loop(witness, [number])[0]
            compare(witness, alone, in_thread(witness, number))
            if witness.scene.plans[number].ending is not Ending.SILENCE:  # then a call is not whole
                compare(witness, alone, in_whole(witness, number))
    except Violation as error:
        raise Violation(witness.report(str(error))) from None
    except Exception as error:
        raise Violation(witness.report(f"{type(error).__name__}: {error}")) from error
    return statuses
