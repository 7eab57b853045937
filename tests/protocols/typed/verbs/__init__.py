"""Tests of `invoker.protocols.typed.verbs`."""
