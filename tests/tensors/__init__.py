"""Tests of `invoker.tensors`."""
