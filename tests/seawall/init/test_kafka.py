"""Clusters that cannot be asked: told with the cause, in the words of who knows it."""

from __future__ import annotations

import pytest

from seawall.init.kafka import KafkaEyes
from seawall.settings import KafkaSettings, Settings
from tiering.cluster.errors import ClientRefused, ClusterUnreachable


def settings(**client: str) -> Settings:
    named = {name.replace("_", "."): value for name, value in client.items()}
    return Settings(kafka=KafkaSettings(bootstrap="127.0.0.1:1", client=named))


def test_a_cluster_that_does_not_answer_is_named_with_the_reason() -> None:
    """Nobody listens: the address and why, not only that it took too long."""
    eyes = KafkaEyes(settings(), answer_timeout_s=1.0)

    with pytest.raises(ClusterUnreachable, match="refused") as told:
        eyes.listing()
    assert told.value.exit_code == 24
    assert "127.0.0.1:1" in str(told.value)


def test_settings_that_librdkafka_refuses_are_told_in_its_words() -> None:
    """A mechanism that there is not: nothing is asked of anybody."""
    with pytest.raises(ClientRefused, match="NO-SUCH"):
        KafkaEyes(settings(security_protocol="SASL_PLAINTEXT", sasl_mechanism="NO-SUCH"))
