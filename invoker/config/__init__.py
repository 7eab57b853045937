"""Settings of the process, and the machinery of knobs with which services declare theirs."""

from invoker.config.knob import Knob, flag_of, knob_of
from invoker.config.process import Config

__all__ = ["Config", "Knob", "flag_of", "knob_of"]
