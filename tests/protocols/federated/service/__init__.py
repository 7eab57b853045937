"""Tests of the service of federated compute."""
