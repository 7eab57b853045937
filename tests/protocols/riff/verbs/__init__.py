"""Tests of `invoker.protocols.riff.verbs`."""
