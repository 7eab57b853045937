"""A simulator: random schedules through sessions, engine and invocations, without a loop, a thread or a clock.

A seed decides everything: which functions run, what their peers send and when, who is slow, who cancels, what is
broken, and who takes the next step. The parts::

    bodies   the functions that are run, and what each must produce
    peer     what a caller sends, and how it behaves
    tasks    coroutines that are stepped by hand, one `await` at a time
    model    the driver: reactor and runners, reduced to what they do with the core
    world    the scheduler, the environment, and the invariants that hold after each step

Evergreen sessions are simulated in another way: with their real reactor and the real runners of async functions, on an
event loop whose time is virtual (`virtual`, `session_bodies`, `session_plan`, `session_peer`, `sessions`).

``python -m tests.simulate --seeds 100000`` runs seeds 0 to 99999; ``--seed 7`` runs one and shows its steps (with
``--sessions`` one of a session). A seed that failed is kept in ``kept_seeds.txt`` or ``kept_session_seeds.txt``.
"""
