"""What the operator set: seawall.toml, SEAWALL_* variables, flags; read once, refused if not understood.

`model` is the values and what is allowed, `load` is where they come from. Only settings that something uses
are here. The folder of the jars is not one of them: it is needed before there are settings, so it is chosen
by the environment alone (SEAWALL_CACHE_DIR).
"""

from seawall.settings.errors import SettingsRefused, SettingsUnreadable
from seawall.settings.load import Loaded, load
from seawall.settings.model import KafkaSettings, S3Settings, Settings
from seawall.settings.names import Origin

__all__ = [
    "KafkaSettings",
    "Loaded",
    "Origin",
    "S3Settings",
    "Settings",
    "SettingsRefused",
    "SettingsUnreadable",
    "load",
]
