"""What deploy/ holds: its linter judges the Containerfile, Kubernetes' schemas the manifests; both keep promises."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from invoker.server.server import _CLOSE_LIMIT_S
from invoker.server.table import TABLE
from invoker.settings import Config, setting_of
from tests.image import containerfile

DEPLOY = Path(__file__).resolve().parent.parent / "deploy"
MANIFESTS = sorted(DEPLOY.glob("*.yaml"))
ENV = {setting_of(one).env: one.name for one in TABLE.settings}

kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="takes requirements/dev.lock")
yaml = pytest.importorskip("yaml", reason="takes requirements/dev.lock")


def documents(path: Path) -> list[dict[str, Any]]:
    """The objects of a manifest."""
    return list(yaml.safe_load_all(path.read_text()))


def pods() -> list[tuple[str, dict[str, Any]]]:
    """The pod of each manifest, whatever kind of object makes it."""
    found = []
    for path in MANIFESTS:
        for one in documents(path):
            spec = one.get("spec", {})
            if pod := spec if one["kind"] == "Pod" else spec.get("template", {}).get("spec"):
                found.append((path.stem, pod))
    return found


PODS = pytest.mark.parametrize("pod", [pod for _, pod in pods()], ids=[name for name, _ in pods()])


def containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    """All containers of a pod."""
    return [*pod.get("initContainers", ()), *pod["containers"]]


def function(pod: dict[str, Any]) -> dict[str, Any]:
    """The container that serves."""
    (found,) = [one for one in containers(pod) if one["name"] == "function"]
    return dict(found)


def settings(pod: dict[str, Any]) -> Config:
    """What that container is configured as."""
    return TABLE.read({one["name"]: one["value"] for one in function(pod).get("env", ())})


def test_the_containerfile_passes_its_linter() -> None:
    """Hadolint has nothing to say."""
    linter = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([linter, DEPLOY / "Containerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_image_is_what_it_promises() -> None:
    """Stages, of which the last is not root's, takes no build tool and starts the command; hashes are asked for."""
    *before, last = containerfile.stages((DEPLOY / "Containerfile").read_text())
    assert before
    steps = dict(last.steps)
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", steps["USER"])
    assert "RUN" not in steps
    assert containerfile.words(steps["ENTRYPOINT"]) == ["invoker"]
    assert any("--require-hashes" in rest for stage in before for word, rest in stage.steps if word == "RUN")


def test_what_the_image_copies_is_sent_to_the_engine() -> None:
    """The ignore file lets through what COPY names, and nothing else."""
    lines = (DEPLOY / "Containerfile.dockerignore").read_text().splitlines()
    let = {line[1:] for line in lines if line.startswith("!")}
    stages = containerfile.stages((DEPLOY / "Containerfile").read_text())
    copied = [rest.split()[:-1] for stage in stages for word, rest in stage.steps if word == "COPY"]
    assert "*" in lines
    assert let == {source for sources in copied if not sources[0].startswith("--from") for source in sources}


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_manifests_are_valid(path: Path) -> None:
    """By the newest schemas of Kubernetes; of a Knative service, the pod that it makes."""
    newest = kubernetes_validate.latest_version()
    for one in documents(path):
        if one["apiVersion"].startswith("serving.knative.dev/"):
            own = {"timeoutSeconds", "containerConcurrency"}  # what Knative adds to a pod
            spec = {name: value for name, value in one["spec"]["template"]["spec"].items() if name not in own}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": one["metadata"], "spec": spec}
            kubernetes_validate.validate(pod, newest, strict=True)
        else:
            kubernetes_validate.validate(one, newest, strict=True)


def test_an_invalid_manifest_is_found() -> None:
    """The validator refuses a word that Kubernetes does not know."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": [], "graceSeconds": 1}}
    with pytest.raises(kubernetes_validate.ValidationError, match="graceSeconds"):
        kubernetes_validate.validate(pod, kubernetes_validate.latest_version(), strict=True)


@PODS
def test_every_variable_is_a_setting(pod: dict[str, Any]) -> None:
    """With a value that the setting can have."""
    assert {one["name"] for one in function(pod).get("env", ())} <= set(ENV)
    settings(pod)


@PODS
def test_probes_ask_for_what_is_served_and_have_a_time_limit(pod: dict[str, Any]) -> None:
    """Ready for traffic: /readyz; alive: /livez."""
    one = function(pod)
    paths = {
        name: one[name]["httpGet"]["path"]
        for name in ("startupProbe", "readinessProbe", "livenessProbe")
        if name in one
    }
    assert paths.pop("startupProbe", "/readyz") == "/readyz"
    assert paths == {"readinessProbe": "/readyz", "livenessProbe": "/livez"}
    assert all(one[name]["timeoutSeconds"] >= 1 for name in one if name.endswith("Probe"))


@PODS
def test_containers_are_confined(pod: dict[str, Any]) -> None:
    """Not root, a read-only file system, no privileges, limits; no token of the cluster."""
    assert pod["automountServiceAccountToken"] is False
    for one in containers(pod):
        has = pod.get("securityContext", {}) | one["securityContext"]
        assert has["runAsNonRoot"] is True
        assert has["runAsUser"] > 0
        assert has["seccompProfile"] == {"type": "RuntimeDefault"}
        assert has["readOnlyRootFilesystem"] is True
        assert has["allowPrivilegeEscalation"] is False
        assert has["capabilities"] == {"drop": ["ALL"]}
        assert set(one["resources"]["limits"]) == set(one["resources"]["requests"]) == {"cpu", "memory"}


@PODS
def test_the_grace_period_is_long_enough(pod: dict[str, Any]) -> None:
    """For the lame duck, the drain, the time that user code has to leave, a stop hook, and the end of connections."""
    config = settings(pod)
    needed = config.lame_duck_s + config.drain_s + config.grace_s + config.hook_timeout_s + _CLOSE_LIMIT_S
    assert needed <= (pod.get("timeoutSeconds") or pod["terminationGracePeriodSeconds"])


@PODS
def test_other_services_do_not_set_our_variables(pod: dict[str, Any]) -> None:
    """A Service named grpc makes Kubernetes set GRPC_PORT to an URL, unless it is told not to."""
    assert pod["enableServiceLinks"] is False


def test_load_balancers_hear_of_a_stop_before_calls_are_refused() -> None:
    """The deployment's lame duck is longer than its readiness probe takes to fail; nothing sleeps."""
    (pod,) = [pod for name, pod in pods() if name == "deployment"]
    probe = function(pod)["readinessProbe"]
    assert settings(pod).lame_duck_s > probe["periodSeconds"] * probe["failureThreshold"] + probe["timeoutSeconds"]
    assert not any("lifecycle" in one for _, pod in pods() for one in containers(pod))


def test_the_function_of_the_deployment_is_one(tmp_path: Path) -> None:
    """The ConfigMap's module, inspected."""
    (config_map,) = [one for one in documents(DEPLOY / "deployment.yaml") if one["kind"] == "ConfigMap"]
    (pod,) = [pod for name, pod in pods() if name == "deployment"]
    for name, text in config_map["data"].items():
        (tmp_path / name).write_text(text)
    (entrypoint,) = function(pod)["args"]
    command = [sys.executable, "-m", "invoker", "inspect", entrypoint]
    env = os.environ | {"PYTHONPATH": str(DEPLOY.parent)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "request/reply" in done.stdout


@PODS
def test_memory_is_what_the_guide_on_hardening_asks_for(pod: dict[str, Any]) -> None:
    """The budget and an eighth more, 6 MiB for each invocation, the bare process, and room for the function."""
    guide = (DEPLOY.parent / "docs/how-to/harden.md").read_text()
    assert "times this and an eighth more, 6 MiB for each stream that may run\nat once" in guide
    config = settings(pod)
    assert config.max_invocations, "without it there is no bound"
    limit = function(pod)["resources"]["limits"]["memory"]
    assert limit == "1Gi"
    needed = config.workers * config.memory_bytes * 9 // 8 + (6 << 20) * config.max_invocations + (64 << 20)
    assert (1 << 30) - needed >= 256 << 20
