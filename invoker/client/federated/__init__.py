"""Devices of federated compute: they check in, train what the server asks for, report, and check in again.

`FederatedClient` is one device; what it needs to run a function is a name that the server's plans have for it.
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
        "Assigned": "invoker.protocols.federated.client.messages",
        "Attempt": "invoker.protocols.federated.client.messages",
        "DeviceOptions": "invoker.protocols.federated.client.client",
        "EligibilityAsked": "invoker.protocols.federated.client.messages",
        "FederatedClient": "invoker.protocols.federated.client.client",
        "Plan": "invoker.protocols.federated.client.plans",
        "Ran": "invoker.protocols.federated.client.running",
        "Report": "invoker.protocols.federated.client.messages",
        "Retry": "invoker.protocols.federated.client.windows",
        "Runner": "invoker.protocols.federated.client.running",
        "SyncFederatedClient": "invoker.protocols.federated.client.sync",
        "entrypoint_plan": "invoker.protocols.federated.client.plans",
        "pickle_plan": "invoker.protocols.federated.client.plans",
        "read_plan": "invoker.protocols.federated.client.plans",
        "select_uri": "invoker.protocols.federated.client.downloads",
    },
)
