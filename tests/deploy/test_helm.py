"""The Helm chart: Helm and Kubernetes' schemas take it, and no container may do what it need not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from seawall.settings import load
from seawall.spark_package.entry import asked_for
from tests.deploy import helm
from tests.deploy.test_schedules import DEPLOY, parsed

CHART = DEPLOY / "helm" / "seawall"
ALL = {
    "serve": {"enabled": True, "tlsSecret": "serve-tls"},
    "scaler": {"enabled": True, "tlsSecret": "scaler-tls"},
    "jobs": {"alerts": "2-59/5 * * * *"},
    "secretEnv": ["kafka-password"],
    "env": [{"name": "AWS_REGION", "value": "eu-central-1"}],
    "files": [{"name": "kafka-ca", "secret": "kafka-ca", "path": "/etc/kafka-ca"}],
    "agent": {"supplementalGroups": [1000], "tolerations": [{"operator": "Exists"}]},
}
SIDECAR = {"agent": {"mode": "sidecar", "logDirs": ["/disk/a", "/disk/b"], "logVolumes": ["a", "b"]}}
VERSIONS = ("1.27", "1.36")
NEWEST = "1.36"  # a helm that `go install` built would take its own library's version for the cluster's


@pytest.fixture(autouse=True)
def _helm() -> None:
    try:
        helm.found()
    except helm.NotToBeHad as reason:
        pytest.skip(str(reason))


def rendered(folder: Path, values: dict[str, Any]) -> list[dict[str, Any]]:
    (folder / "values.json").write_text(json.dumps(values))
    told = str(folder / "values.json")
    done = helm.run("template", "tides", str(CHART), "-n", "kafka", "--kube-version", NEWEST, "-f", told)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def pods(objects: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for each in objects:
        spec = each.get("spec", {})
        if each["kind"] == "CronJob":
            spec = spec["jobTemplate"]["spec"]
        if "template" in spec:
            yield each["metadata"]["name"], spec["template"]["spec"]


def test_helm_finds_nothing_to_say() -> None:
    """`helm lint --strict` of the chart with its own values."""
    done = helm.run("lint", "--strict", str(CHART))

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("values", [{}, ALL, SIDECAR], ids=["defaults", "everything", "sidecar"])
def test_kubernetes_schemas_take_what_is_rendered(values: dict[str, Any], tmp_path: Path) -> None:
    """Every object, strictly: no key that Kubernetes does not know, for an old release and a new one."""
    kubernetes: Any = pytest.importorskip("kubernetes_validate", reason="it is not installed")

    objects = rendered(tmp_path, values)

    assert len(objects) >= 5
    for each in objects:
        for version in VERSIONS:
            kubernetes.validate(each, version, strict=True)


def test_everything_that_is_asked_for_is_there_and_called_as_it_is_called(tmp_path: Path) -> None:
    """Agent, serve, scaler and five jobs; each one's verb and options are ones that the program takes."""
    objects = rendered(tmp_path, ALL)

    found = dict(pods(objects))
    steps = ("agent", "serve", "scaler", "ingest", "audit", "maintain", "alerts", "status")
    assert set(found) == {f"tides-seawall-{step}" for step in steps}
    for name, pod in found.items():
        [container] = pod["containers"]
        words = [str(word) for word in container["args"]]
        if "command" in container:
            assert container["command"] == ["python", "-m", "seawall.spark_package"], name
            words = list(asked_for(words).verb)
        parsed(words)
    kinds = sorted(each["kind"] for each in objects)
    assert kinds.count("CronJob") == 5
    assert all(each["spec"]["concurrencyPolicy"] == "Forbid" for each in objects if each["kind"] == "CronJob")


def test_no_container_may_more_than_it_needs(tmp_path: Path) -> None:
    """Not root, no capability, a root file system that is read-only, no token; the log dirs read-only too."""
    for name, pod in pods(rendered(tmp_path, ALL)):
        [container] = pod["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"] is True, name
        assert container["securityContext"]["allowPrivilegeEscalation"] is False, name
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}, name
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        assert pod["automountServiceAccountToken"] is False, name
        writable = {each["mountPath"] for each in container["volumeMounts"] if not each.get("readOnly")}
        assert writable <= {"/tmp", "/var/lib/seawall"}, name
        mounted = {each["name"] for each in container["volumeMounts"]}
        assert mounted == {each["name"] for each in pod["volumes"]}, name
        assert len(name) <= 52, name  # what a CronJob's name may have
        assert container["resources"]["limits"]["memory"], name


def test_a_sidecar_mounts_the_brokers_own_volumes(tmp_path: Path) -> None:
    """No DaemonSet; a patch that is YAML, with each log dir read-only on its volume."""
    objects = rendered(tmp_path, SIDECAR)

    assert not [each for each in objects if each["kind"] == "DaemonSet"]
    [patch] = [each for each in objects if each["metadata"]["name"] == "tides-seawall-agent-sidecar"]
    spec = yaml.safe_load(patch["data"]["sidecar.yaml"])["spec"]
    [container] = spec["template"]["spec"]["containers"]
    mounts = {each["mountPath"]: each for each in container["volumeMounts"]}
    assert [mounts[path]["name"] for path in ("/disk/a", "/disk/b")] == ["a", "b"]
    assert mounts["/disk/a"]["readOnly"] is True
    own = {each["name"] for each in spec["template"]["spec"]["volumes"]}
    own |= {each["metadata"]["name"] for each in spec["volumeClaimTemplates"]}
    assert {each["name"] for each in container["volumeMounts"]} == own | {"a", "b"}


def test_each_verb_has_an_account_of_its_own_role(tmp_path: Path) -> None:
    """Who copies is not who audits, and who reads is neither."""
    accounts = {name: pod["serviceAccountName"] for name, pod in pods(rendered(tmp_path, ALL))}

    assert accounts["tides-seawall-agent"] == "tides-seawall-agent"
    assert accounts["tides-seawall-serve"] == accounts["tides-seawall-scaler"] == "tides-seawall-reader"
    assert {accounts[f"tides-seawall-{step}"] for step in ("ingest", "audit")} == {"tides-seawall-auditor"}


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"agnet": {}}, "agnet"),
        ({"serve": {"enabled": True}}, "serve"),
        ({"jobs": {"audit": "daily"}}, "audit"),
        ({"agent": {"logDirs": ["relative"]}}, "logDirs"),
        ({"agent": {"runAsUser": 0}}, "runAsUser"),
        ({"settings": '[kafka.client]\n"sasl.password" = "x"\n'}, "settings"),
    ],
)
def test_values_that_are_none_are_refused(values: dict[str, Any], why: str, tmp_path: Path) -> None:
    """A name that is misspelt, an endpoint that anybody could read from, root, a password in the settings."""
    (tmp_path / "values.json").write_text(json.dumps(values))

    done = helm.run("template", "tides", str(CHART), "-f", str(tmp_path / "values.json"))

    assert done.returncode != 0
    assert why in done.stderr


def test_the_settings_of_the_chart_are_taken(tmp_path: Path) -> None:
    """What stands in values.yaml is a settings file that Seawall reads."""
    told = yaml.safe_load((CHART / "values.yaml").read_text())
    (tmp_path / "seawall.toml").write_text(told["settings"])

    assert load(file=tmp_path / "seawall.toml", environ={}).settings.audit.tables is not None


def test_every_value_is_in_the_readme() -> None:
    """By its path, down to what is a value of its own."""
    said = set(re.findall(r"^\| `([\w.]+)` \|", (CHART / "README.md").read_text(), re.MULTILINE))

    def leaves(tree: dict[str, Any], under: str = "") -> Iterator[str]:
        for name, value in tree.items():
            if isinstance(value, dict) and value and name != "resources":
                yield from leaves(value, f"{under}{name}.")
            else:
                yield f"{under}{name}"

    assert said == set(leaves(yaml.safe_load((CHART / "values.yaml").read_text())))
