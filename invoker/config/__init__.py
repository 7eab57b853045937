"""Settings of the process: every knob once, and the machinery that reads them."""

from invoker.config.process import PROTOCOLS, Config, Knob, flag_of, knob_of, knobs

__all__ = ["PROTOCOLS", "Config", "Knob", "flag_of", "knob_of", "knobs"]
