"""What services declare as data."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from invoker.attach.declared import load
from invoker.attach.service import Service
from invoker.server.table import TABLE
from invoker.settings.setting import settings_of


def test_a_name_leads_to_what_it_refers_to() -> None:
    """The module is imported; a name that it does not have is an error."""
    assert load("invoker.attach.service:Service") is Service
    with pytest.raises(AttributeError, match="NoService"):
        load("invoker.attach.service:NoService")


@pytest.mark.parametrize("row", TABLE.rows)
def test_what_a_row_names_is_there(row: type[Service]) -> None:
    """Modules of verbs, files, listings and inspections exist, and have what they need."""
    wanted = [(one.module, ("add_arguments", "run")) for one in row.verbs]
    wanted += [(row.entry_file.module, ("inspected",))] if row.entry_file else []
    wanted += [(row.listing.module, ("listed",))] if row.listing else []
    wanted += [(row.inspection, ("described", "rows"))] if row.inspection else []
    for module, names in wanted:
        assert find_spec(module)
        assert all(callable(load(f"{module}:{name}")) for name in names)
    known = {one.name for one in settings_of(row.settings)} if row.settings is not None else set()
    assert known.issuperset(row.host_settings)
    if row.child_codecs:
        assert callable(load(row.child_codecs))
