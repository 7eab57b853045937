"""Tests of `invoker.protocols.evergreen.verbs`."""
