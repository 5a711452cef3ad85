"""The fixtures that every test may ask for; they live in tests/cluster/fixtures.py."""

pytest_plugins = ["tests.cluster.fixtures", "tests.cluster.versitygw"]
