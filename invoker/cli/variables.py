"""Finds environment variables that look like settings but are not, such as ``INVOKER_THREDS``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from invoker.errors.wording import nearest
from invoker.server.table import TABLE
from invoker.settings import setting_of

_OURS = "INVOKER_"
# The first two prefixes are for the invoker's own processes, the third is for its tests. The last prefix is followed by
# the name of a key that the operator chooses.
_NOT_SETTINGS = ("INVOKER_WORKER", "INVOKER_RELOADED", "INVOKER_TEST_", "INVOKER_LLM_KEY_")
# Kubernetes sets these variables in every pod beside a Service that is named "invoker"
_OF_A_SERVICE = ("INVOKER_SERVICE_", "INVOKER_PORT_")


def strays(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each variable that begins with INVOKER_ and belongs to no setting."""
    known = [setting_of(one).env for one in TABLE.settings]
    bare_names = {one.removeprefix(_OURS): one for one in known}
    for name, value in environment.items():
        if not name.startswith(_OURS) or name in known or name.startswith(_OF_A_SERVICE):
            continue
        if name.startswith(_NOT_SETTINGS) or (name == "INVOKER_PORT" and "://" in value):
            continue
        meant = bare_names.get(nearest(name.removeprefix(_OURS), bare_names), "")
        hint = f"did you mean {meant}?" if meant else "'invoker --help' lists those that there are"
        yield f"the environment variable {name} is not known and is ignored; {hint}"
