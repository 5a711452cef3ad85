"""Where an agent looks, and where it keeps what is its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from seawall.agent.errors import NoLogDirsNamed, PropertiesUnreadable
from seawall.agent.host import log_dirs, state_folder
from seawall.settings.model import AgentSettings
from tiering.cluster.interface import BrokerIdentity

BROKER = BrokerIdentity(cluster_id="c1", broker_id=7)


def _of(text: str, folder: Path) -> tuple[Path, ...]:
    path = folder / "server.properties"
    path.write_text(text, encoding="utf-8")
    return log_dirs(AgentSettings(server_properties=str(path)))


def test_settings_name_the_log_dirs() -> None:
    """What is set is taken, and no file is looked for."""
    found = log_dirs(AgentSettings(log_dirs=("/a", "/b"), server_properties="/not/there"))

    assert found == (Path("/a"), Path("/b"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("log.dirs=/a,/b\n", ["/a", "/b"]),
        ("log.dir = /a\nlog.dirs = /b , /c ,\n", ["/b", "/c"]),
        ("log.dir=/a\n", ["/a"]),
        ("#log.dirs=/x\n! log.dirs=/y\nlog.dirs=/a\n", ["/a"]),
        ("log.dirs=/a,\\\n   /b\n", ["/a", "/b"]),
        ("log.dirs=/a\nmetadata.log.dir=/m\n", ["/a", "/m"]),
        ("log.dirs=/a\nmetadata.log.dir=/a\n", ["/a"]),
    ],
)
def test_brokers_own_file_names_them(text: str, expected: list[str], tmp_path: Path) -> None:
    """As the broker reads it: log.dirs before log.dir, comments, continued lines, the metadata log's too."""
    assert [str(path) for path in _of(text, tmp_path)] == expected


@pytest.mark.parametrize("text", ["", "broker.id=1\n", "log.dirs=\n", "metadata.log.dir=/m\n"])
def test_file_that_names_none_is_an_error(text: str, tmp_path: Path) -> None:
    """Kafka's own default, a folder in /tmp, is never assumed."""
    with pytest.raises(PropertiesUnreadable, match=r"server\.properties name no log dirs"):
        _of(text, tmp_path)


def test_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """The file is named in the error, with the system's reason."""
    with pytest.raises(PropertiesUnreadable, match="No such file"):
        log_dirs(AgentSettings(server_properties=str(tmp_path / "none")))


def test_nothing_named_is_an_error_that_says_what_to_set() -> None:
    """Neither setting: the message names both."""
    with pytest.raises(NoLogDirsNamed, match=r"agent\.log_dirs"):
        log_dirs(AgentSettings())


def test_state_folder_is_one_for_each_broker() -> None:
    """As set; else under XDG_STATE_HOME, else under the home folder, with cluster and broker in its name."""
    assert state_folder(AgentSettings(state_dir="/s"), BROKER, {}) == Path("/s")
    assert state_folder(AgentSettings(), BROKER, {"XDG_STATE_HOME": "/x"}) == Path("/x/seawall/c1-7")
    assert state_folder(AgentSettings(), BROKER, {"HOME": "/h"}) == Path("/h/.local/state/seawall/c1-7")
