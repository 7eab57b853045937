"""Runs bodies: on the loop (`loop`), or in threads (`thread`); `sync` is what all threads do, whoever started them.

A body in a child process, which can be killed, will be a third runner beside these, `process`. It needs no other door
and no other session: what a runner is fed and what it emits are `Message`s, encoded bytes with their headers, so that
they go over a pipe as they are. Its half in this process implements `Runner`: it writes each Feed, EndInput and
CloseOutput to the pipe, and calls ``host.emitted``, ``ended`` and ``finished`` for what it reads there. The half in the
child owns the decoders, the encoders and the function, and is a `SyncBody` whose `pull` and `put` use the pipe, or the
twin of a `LoopRunner`. The budget of the inputs stays here: a message counts as unread until the child has asked for
the next one. `placement_of` in `invoker.drive.driver` will choose it for functions that ask for isolation.
"""

__all__: list[str] = []
