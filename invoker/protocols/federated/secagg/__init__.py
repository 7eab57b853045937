"""Secure aggregation: the cryptography that devices and the aggregator share. It knows neither sessions nor rounds.

Functions of a task use `quantize`, `dequantize`, `centred` and `widest_scale`, because what is summed up must be
numbers from 0 to a modulus. The rest is for the two machines that speak the protocol.
"""

from invoker.protocols.federated.secagg.quantity import centred, dequantize, quantize, widest_scale

__all__ = ["centred", "dequantize", "quantize", "widest_scale"]
