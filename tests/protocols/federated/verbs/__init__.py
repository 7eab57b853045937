"""Tests of `invoker.protocols.federated.verbs`."""
