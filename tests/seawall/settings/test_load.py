"""Settings: which source wins, what is refused, and what is never shown."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from pydantic import SecretStr

from seawall.settings import Origin, Settings, SettingsRefused, SettingsUnreadable, load


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a test writes its settings file."""
    return tmp_path / "seawall.toml"


def _refusal(file: Path, text: str = "", environ: dict[str, str] | None = None) -> str:
    file.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsRefused) as refused:
        load(file=file, environ=environ or {})
    return str(refused.value)


def test_flag_beats_environment_beats_file_beats_default(file: Path) -> None:
    """Each source overrides the ones below it key by key, and each value knows where it came from."""
    file.write_text('[s3]\nbucket = "of-file"\nregion = "of-file"\nprefix = "of-file"\n', encoding="utf-8")

    loaded = load(
        file=file,
        environ={"SEAWALL_S3__BUCKET": "of-environment", "SEAWALL_S3__REGION": "of-environment"},
        flags={"s3.bucket": ("--bucket", "of-flag"), "s3.region": ("--region", None)},
    )

    s3 = loaded.settings.s3
    assert (s3.bucket, s3.region, s3.prefix, s3.endpoint_url) == (
        "of-flag",
        "of-environment",
        "of-file",
        None,
    )
    assert [loaded.origin(f"s3.{key}") for key in ("bucket", "region", "prefix", "endpoint_url")] == [
        Origin(source="flag", name="--bucket"),
        Origin(source="environment", name="SEAWALL_S3__REGION"),
        Origin(source="file", name=str(file)),
        Origin(source="default"),
    ]


def test_file_is_found_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without being named, ./seawall.toml is read if it is there, and is not missed if it is not."""
    monkeypatch.chdir(tmp_path)
    without = load(environ={})
    Path("seawall.toml").write_text('[s3]\nbucket = "archive"', encoding="utf-8")

    found = load(environ={})

    assert (without.file, without.settings.s3.bucket) == (None, None)
    assert found.settings.s3.bucket == "archive"


def test_file_can_be_named_by_the_environment(file: Path) -> None:
    """SEAWALL_SETTINGS names the file, and the flag names another over it."""
    file.write_text('[s3]\nbucket = "archive"', encoding="utf-8")
    other = file.with_name("other.toml")
    other.write_text('[s3]\nbucket = "other"', encoding="utf-8")
    environ = {"SEAWALL_SETTINGS": str(file)}

    assert load(environ=environ).settings.s3.bucket == "archive"
    assert load(file=other, environ=environ).settings.s3.bucket == "other"


def test_named_file_must_be_there(file: Path) -> None:
    """A file that was asked for and is missing is an error, not an empty file."""
    with pytest.raises(SettingsUnreadable, match=r"seawall\.toml cannot be read: No such file"):
        load(file=file, environ={})


@pytest.mark.parametrize("content", [b"[s3", b"\xff\xfe", b"[s3]\nbucket = archive"])
def test_file_that_is_not_toml_is_refused(file: Path, content: bytes) -> None:
    """What the file's format does not allow is reported as such."""
    file.write_bytes(content)

    with pytest.raises(SettingsUnreadable):
        load(file=file, environ={})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('kafka.bootstrp = "a:1"', "unknown key `kafka.bootstrp` in {file}; did you mean `kafka.bootstrap`?"),
        ('kafka.bootstrap.servers = "a:1"', "did you mean `kafka.bootstrap`?"),
        ('kafak.bootstrap = "a:1"', "did you mean `kafka.bootstrap`?"),
        ('bucket = "a"', "did you mean `s3.bucket`?"),
        ('s3.endpoint = "a"', "did you mean `s3.endpoint_url`?"),
        ("zzz = 1", "unknown key `zzz` in {file}; `seawall settings` lists those there are"),
        ('cache_dir = "/a"', "it is set by the environment variable SEAWALL_CACHE_DIR"),
        ('kafka.client."bootstrap.servers" = "a:1"', "the brokers are `kafka.bootstrap`"),
        ('kafka = "a:1"', "`kafka` in {file} must be a table: [kafka]"),
        ('kafka.client = "a"', "`kafka.client` in {file} must be a table: [kafka.client]"),
        ('[[s3]]\nbucket = "a"', "`s3` in {file} must be a table: [s3]"),
    ],
)
def test_unknown_key_is_refused_with_the_nearest_name(file: Path, text: str, said: str) -> None:
    """A key that nothing reads is an error that names the key most likely meant."""
    assert said.format(file=file) in _refusal(file, text)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "SEAWALL_S3__BUKET",
            "unknown environment variable SEAWALL_S3__BUKET; did you mean SEAWALL_S3__BUCKET?",
        ),
        ("SEAWALL_BUCKET", "did you mean SEAWALL_S3__BUCKET?"),
        ("SEAWALL_KAFKA_BOOTSTRAP", "did you mean SEAWALL_KAFKA__BOOTSTRAP?"),
        ("SEAWALL_KAFKA", "did you mean SEAWALL_KAFKA__BOOTSTRAP?"),
        ("SEAWALL_KAFKA__CLIENT__", "unknown environment variable SEAWALL_KAFKA__CLIENT__"),
        ("SEAWALL_CACHEDIR", "did you mean SEAWALL_CACHE_DIR?"),
        ("SEAWALL_KAFKA__CLIENT__BOOTSTRAP_SERVERS", "the brokers are `kafka.bootstrap`"),
    ],
)
def test_unknown_variable_is_refused_with_the_nearest_name(file: Path, name: str, said: str) -> None:
    """A SEAWALL_ variable that nothing reads is an error too: it was set for a reason."""
    assert said in _refusal(file, environ={name: "a:1"})


def test_variables_of_others_are_left_alone(file: Path) -> None:
    """Only names that begin with ours are looked at."""
    file.write_text("", encoding="utf-8")

    assert load(file=file, environ={"SEAWALLS": "1", "PATH": "/bin"}).settings == Settings()


def test_every_problem_is_told_at_once(file: Path) -> None:
    """Whoever corrects a file sees all that is wrong with it."""
    said = _refusal(file, "a = 1\nb = 2\n", {"SEAWALL_C": "3"})

    assert [line.split(";")[0] for line in said.splitlines()] == [
        "unknown environment variable SEAWALL_C",
        f"unknown key `a` in {file}",
        f"unknown key `b` in {file}",
    ]


@pytest.mark.parametrize(
    ("text", "key", "value", "allowed"),
    [
        ('kafka.bootstrap = "localhost"', "kafka.bootstrap", "'localhost'", "host:port"),
        ('kafka.bootstrap = "localhost:0"', "kafka.bootstrap", "'localhost:0'", "host:port"),
        ('kafka.bootstrap = "a:1,,b:2"', "kafka.bootstrap", "'a:1,,b:2'", "host:port"),
        ("kafka.bootstrap = 9092", "kafka.bootstrap", "9092", "text"),
        ('s3.bucket = "s3://archive"', "s3.bucket", "'s3://archive'", "no s3://"),
        ('s3.prefix = "/a"', "s3.prefix", "'/a'", "single slashes between"),
        ('s3.prefix = ""', "s3.prefix", "''", "single slashes between"),
        ('s3.endpoint_url = "localhost:9000"', "s3.endpoint_url", "'localhost:9000'", "http:// or https://"),
        ('s3.endpoint_url = "http://a:b"', "s3.endpoint_url", "'http://a:b'", "http:// or https://"),
        ('s3.endpoint_url = "http://a/path"', "s3.endpoint_url", "'http://a/path'", "http:// or https://"),
        ('s3.region = "Frankfurt am Main"', "s3.region", "'Frankfurt am Main'", "such as eu-central-1"),
        ('kafka.client."x.y" = [1]', "kafka.client.x.y", "[1]", "text"),
    ],
)
def test_bad_value_names_key_place_value_and_what_is_allowed(
    file: Path, text: str, key: str, value: str, allowed: str
) -> None:
    """One line is enough to find the value and to correct it."""
    said = _refusal(file, text)

    assert said.startswith(f"`{key}` from file {file}: {value} is not allowed; it must be ")
    assert allowed in said


def test_bad_value_of_the_environment_names_the_variable(file: Path) -> None:
    """The place of a value is its variable, if it came from there."""
    said = _refusal(file, environ={"SEAWALL_S3__BUCKET": "A B"})

    assert said.startswith("`s3.bucket` from environment SEAWALL_S3__BUCKET: 'A B' is not allowed")


def test_client_properties_pass_through_as_text(file: Path) -> None:
    """Under kafka.client any of librdkafka's names is taken, quoted or not, and reaches it as it takes it."""
    file.write_text(
        '[kafka]\nbootstrap = "a:1, b:2"\n'
        '[kafka.client]\nsecurity.protocol = "SSL"\n"socket.timeout.ms" = 500\n'
        "enable.ssl.certificate.verification = false\n",
        encoding="utf-8",
    )

    loaded = load(file=file, environ={"SEAWALL_KAFKA__CLIENT__SASL_USERNAME": "tide"})

    assert loaded.settings.kafka.librdkafka() == {
        "bootstrap.servers": "a:1,b:2",
        "security.protocol": "SSL",
        "socket.timeout.ms": "500",
        "enable.ssl.certificate.verification": "false",
        "sasl.username": "tide",
    }


@pytest.mark.parametrize(
    "name",
    [
        "sasl.password",
        "ssl.key.password",
        "ssl.keystore.password",
        "ssl.key.pem",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.config",
    ],
)
def test_secret_is_usable_and_never_shown(file: Path, name: str) -> None:
    """A property that carries a secret is given to librdkafka, and no representation of settings holds it."""
    file.write_text(f'[kafka.client]\n{name} = "hunter2"\n', encoding="utf-8")

    loaded = load(file=file, environ={})

    assert loaded.settings.kafka.librdkafka() == {name: "hunter2"}
    assert isinstance(dict(loaded.items())[f"kafka.client.{name}"], SecretStr)
    assert "hunter2" not in repr(loaded) + str(loaded.settings) + loaded.settings.model_dump_json()


@pytest.mark.parametrize(
    "text",
    ['[kafka.client]\nsasl.password = ["hunter2"]', '[s3]\nendpoint_url = "http://tide:hunter2@a"'],
)
def test_refused_value_that_may_be_secret_is_not_shown(file: Path, text: str) -> None:
    """The message of a refusal, and all that hangs on it, keeps a secret."""
    file.write_text(text, encoding="utf-8")

    with pytest.raises(SettingsRefused) as refused:
        load(file=file, environ={})

    shown = [str(refused.value), repr(refused.value.__cause__), repr(refused.value.__context__)]
    assert "hunter2" not in "".join(shown)
    assert "not shown" in shown[0]


def test_settings_are_frozen() -> None:
    """No part of the program can change what another one reads."""
    settings = Settings()

    with pytest.raises(ValueError, match="frozen"):
        settings.s3 = settings.s3
    with pytest.raises(ValueError, match="frozen"):
        settings.s3.bucket = "other"


def test_making_a_value_reads_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings made in code are what was given, whatever is set around it."""
    monkeypatch.setenv("SEAWALL_S3__BUCKET", "of-environment")

    assert Settings().s3.bucket is None


def test_refusal_survives_pickling(file: Path) -> None:
    """The error can cross processes, as every StatedError can."""
    file.write_text("a = 1", encoding="utf-8")
    with pytest.raises(SettingsRefused) as refused:
        load(file=file, environ={})

    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)
