"""What a package's driver asks of AWS before Seawall begins: a file of settings in S3, a secret's value.

Credentials, region and endpoint are boto3's own chain. No value is part of an error.
"""

from __future__ import annotations

from urllib.parse import urlsplit

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from seawall.spark_package.errors import EntryRefused, SecretUnreadable

SETTINGS_BYTES_MAX = 1024 * 1024


def text_of(url: str) -> str:
    """A small object's text."""
    place = urlsplit(url)
    try:
        answer = boto3.client("s3").get_object(Bucket=place.netloc, Key=place.path.lstrip("/"))
        content = answer["Body"].read(SETTINGS_BYTES_MAX + 1)
    except (BotoCoreError, ClientError) as refused:
        raise EntryRefused(why=f"{url} cannot be read: {refused}") from refused
    if len(content) > SETTINGS_BYTES_MAX:
        raise EntryRefused(why=f"{url} is no file of settings: it has more than {SETTINGS_BYTES_MAX} bytes")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise EntryRefused(why=f"{url} is no text") from None


def secret(ident: str) -> str:
    """The text that Secrets Manager keeps under a name or ARN."""
    try:
        answer = boto3.client("secretsmanager").get_secret_value(SecretId=ident)
    except (BotoCoreError, ClientError) as refused:
        raise SecretUnreadable(variable=ident, why=str(refused)) from refused
    text = answer.get("SecretString")
    if not isinstance(text, str):
        raise SecretUnreadable(variable=ident, why="it has no text")
    return text
