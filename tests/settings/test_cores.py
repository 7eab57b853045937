"""Cores that this process may use."""

from __future__ import annotations

import os

import pytest

from invoker.settings.cores import usable_cores


@pytest.fixture
def allowed(monkeypatch):
    """The scheduler lets us run on eight cores."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)


@pytest.mark.usefixtures("allowed")
@pytest.mark.parametrize(
    ("quota", "cores"),
    [
        ("200000 100000\n", 2),
        ("150000 100000\n", 2),
        ("10000 100000\n", 1),
        ("9900000 100000\n", 8),
        ("max 100000\n", 8),
    ],
)
def test_a_container_gets_no_more_than_its_quota(tmp_path, quota, cores):
    """Rounded up, and never more than the scheduler allows."""
    (tmp_path / "cpu.max").write_text(quota)
    assert usable_cores(tmp_path / "cpu.max") == cores


@pytest.mark.usefixtures("allowed")
def test_without_a_quota_the_scheduler_decides(tmp_path):
    """No such file: all that the process may run on."""
    assert usable_cores(tmp_path / "missing") == 8


def test_a_system_that_knows_no_affinity_counts_its_cores(tmp_path, monkeypatch):
    """And one that knows nothing at all has one."""
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cores(tmp_path / "missing") == 1
