"""Settings of the process, and the machinery of knobs with which services declare theirs."""

from invoker.settings.knob import Knob, flag_of, knob_of
from invoker.settings.process import Config

__all__ = ["Config", "Knob", "flag_of", "knob_of"]
