"""Devices of federated compute: they check in, run the training that the server requests, report, and check in again.

`FederatedClient` is one device; it runs local functions by the names that the server's plans contain.
"""

from typing import TYPE_CHECKING

from invoker.lazy import lazy

if TYPE_CHECKING:
    from invoker.protocols.federated.client.client import DeviceOptions, FederatedClient
    from invoker.protocols.federated.client.downloads import select_uri
    from invoker.protocols.federated.client.messages import Assigned, Attempt, EligibilityAsked, Report
    from invoker.protocols.federated.client.plans import Plan, entrypoint_plan, pickle_plan, read_plan
    from invoker.protocols.federated.client.running import Ran, Runner
    from invoker.protocols.federated.client.sync import SyncFederatedClient
    from invoker.protocols.federated.client.windows import Retry

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

__getattr__, __dir__ = lazy(
    __name__,
    {
        "client": "DeviceOptions FederatedClient",
        "downloads": "select_uri",
        "messages": "Assigned Attempt EligibilityAsked Report",
        "plans": "Plan entrypoint_plan pickle_plan read_plan",
        "running": "Ran Runner",
        "sync": "SyncFederatedClient",
        "windows": "Retry",
    },
    "invoker.protocols.federated.client",
)
