"""Tests of `invoker.protocols.graphpipe.verbs`."""
