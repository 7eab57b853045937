"""Devices of federated compute: they check in, train what the server asks for, report, and come again.

`FederatedClient` is one device; what it needs to run a function is a name that the server's plans have for it.
"""

from invoker.client.federated.client import DeviceOptions, FederatedClient
from invoker.client.federated.downloads import select_uri
from invoker.client.federated.plans import Plan, entrypoint_plan, pickle_plan, read_plan
from invoker.client.federated.running import Ran, Runner
from invoker.client.federated.sync import SyncFederatedClient
from invoker.client.federated.windows import Retry
from invoker.client.federated.words import Assigned, Attempt, EligibilityAsked, Report

__all__ = [
    "Assigned",
    "Attempt",
    "DeviceOptions",
    "EligibilityAsked",
    "FederatedClient",
    "Plan",
    "Ran",
    "Report",
    "Retry",
    "Runner",
    "SyncFederatedClient",
    "entrypoint_plan",
    "pickle_plan",
    "read_plan",
    "select_uri",
]
