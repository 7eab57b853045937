"""Secure aggregation: the cryptography that devices and the aggregator share.

It does not depend on sessions or rounds. Functions of a task use `quantize`, `dequantize`, `centred` and
`widest_scale`, because only integers from 0 to a modulus can be summed up. All else is for the client and the server of
the protocol.
"""

from invoker.protocols.federated.secagg.quantity import centred, dequantize, quantize, widest_scale

__all__ = ["centred", "dequantize", "quantize", "widest_scale"]
