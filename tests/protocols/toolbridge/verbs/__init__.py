"""Tests of `invoker.protocols.toolbridge.verbs`."""
