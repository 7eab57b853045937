"""Settings of the process, and the machinery of settings with which services declare theirs."""

from invoker.settings.process import Config
from invoker.settings.setting import Setting, flag_of, setting_of

__all__ = ["Config", "Setting", "flag_of", "setting_of"]
