"""The settings of the process, and the functions by which services declare settings of their own."""

from invoker.settings.process import Config
from invoker.settings.setting import Setting, flag_of, setting_of

__all__ = ["Config", "Setting", "flag_of", "setting_of"]
