"""Tests of `invoker.fields`."""
