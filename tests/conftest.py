"""The fixtures that every test may ask for; they live in tests/cluster/fixtures.py.

And Hypothesis asked for truth alone: how long an example takes is told by the machine's other work.
"""

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.cluster.fixtures", "tests.cluster.versitygw"]

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("untimed"), max_examples=20)  # `make test-fast`
settings.load_profile("untimed")
