"""A simulator: random schedules through sessions, engine, invocations and the real drivers, in virtual time.

A seed decides everything: which functions run, what their callers send and when, who is slow, who cancels, and what is
broken. Each conversation runs in several worlds, which must agree on what its caller and the log see::

    bodies, twins   the functions that are run, async and sync, and what each must produce
    peer, scene     what a seed decides: callers, limits, drains
    loop_world      the real `Reactor` and the runners of async functions, on an event loop whose time is virtual
    thread_world    the real `DirectConversation` with `Single` and `Several`, on a wire that is a script
    whole_world     the real `Whole`, which has everything before the function begins
    verdict         what must hold in each world
    compare         what two worlds must agree on, and which differences are allowed

Evergreen sessions are simulated on the same kind of loop, with their own reactor (`session_bodies`, `session_plan`,
`session_peer`, `sessions`).

``python -m tests.simulate --seeds 100000`` runs seeds 0 to 99999; ``--seed 7`` runs one and shows its steps (with
``--sessions`` one of a session). A seed that failed is kept in ``kept_seeds.txt`` or ``kept_session_seeds.txt``.
"""
