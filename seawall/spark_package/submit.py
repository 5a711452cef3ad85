"""The words that hand a package to a cluster: on a standalone master, on YARN, on EMR Serverless.

Pure. Names no file that `archive` does not make.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence

from seawall.spark_package.archive import ENTRY, ENVIRONMENT, JARS

PYTHON = "./environment/bin/python"
STEP = ("audit", "run")


def parameters(at: str, jars: Sequence[str]) -> list[str]:
    """What spark-submit is given wherever it runs: the packages for every host, and the jars."""
    return [
        *("--archives", f"{at}/{ENVIRONMENT}#environment"),
        *("--jars", ",".join(f"{at}/{JARS}/{jar}" for jar in jars)),
    ]


def standalone(at: str, jars: Sequence[str], *, master: str = "spark://HOST:7077") -> list[str]:
    """The driver is where this is called: with the archive unpacked into ./environment."""
    return [
        *("spark-submit", "--master", master, *parameters(at, jars)),
        *("--conf", f"spark.pyspark.python={PYTHON}"),
        *("--conf", f"spark.pyspark.driver.python={PYTHON}"),
        f"{at}/{ENTRY}",
    ]


def yarn(at: str, jars: Sequence[str]) -> list[str]:
    return [
        *("spark-submit", "--master", "yarn", "--deploy-mode", "cluster", *parameters(at, jars)),
        *("--conf", f"spark.pyspark.python={PYTHON}"),
        *("--conf", f"spark.yarn.appMasterEnv.PYSPARK_PYTHON={PYTHON}"),
        f"{at}/{ENTRY}",
    ]


def emr_parameters(at: str, jars: Sequence[str]) -> str:
    """`submit_parameters` of terraform/modules/audit, in the words of AWS's own guide."""
    names = (
        "spark.emr-serverless.driverEnv.PYSPARK_DRIVER_PYTHON",
        "spark.emr-serverless.driverEnv.PYSPARK_PYTHON",
        "spark.executorEnv.PYSPARK_PYTHON",
    )
    return " ".join([*parameters(at, jars), *(f"--conf {name}={PYTHON}" for name in names)])


def emr_serverless(at: str, jars: Sequence[str]) -> list[str]:
    driver = {
        "sparkSubmit": {
            "entryPoint": f"{at}/{ENTRY}",
            "entryPointArguments": list(STEP),
            "sparkSubmitParameters": emr_parameters(at, jars),
        }
    }
    where = ("--application-id", "APPLICATION", "--execution-role-arn", "ROLE")
    return ["aws", "emr-serverless", "start-job-run", *where, "--job-driver", json.dumps(driver)]


def text(at: str, jars: Sequence[str]) -> str:
    """All three, to be read and copied."""
    step = list(STEP)
    unpack = f"mkdir -p environment && tar -xzf {shlex.quote(f'{at}/{ENVIRONMENT}')} -C environment"
    is_here = "://" not in at
    return "\n".join(
        [
            "standalone:",
            *([f"  {unpack}"] if is_here else [f"  (unpack {at}/{ENVIRONMENT} into ./environment first)"]),
            f"  {shlex.join([*standalone(at, jars), *step])}",
            "YARN:",
            f"  {shlex.join([*yarn(at, jars), *step])}",
            "EMR Serverless" + (" (after a copy to S3: say where by --at s3://...):" if is_here else ":"),
            f"  {shlex.join(emr_serverless(at, jars))}",
        ]
    )
