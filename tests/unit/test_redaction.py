"""Redacted paths: without the secrets of URIs, otherwise unchanged."""

from __future__ import annotations

import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from biasspark.errors import redact

# The secret has a letter that occurs nowhere else: it shows whether any part of a secret is left.
SECRETS = st.text(string.ascii_letters + string.digits + "/+=@:?#%!$*~.,;-_", min_size=1, max_size=40).map(
    "§{}§".format
)
IN_QUERIES = SECRETS.filter(lambda secret: not {"?", "#"} & {*secret})
SCHEMES = st.sampled_from(["s3", "s3a", "S3N", "hdfs", "jdbc:postgresql", "https", "gs"])
USERS = st.text(string.ascii_letters + string.digits + "+=%.-_", max_size=20)
NAMES = st.sampled_from(
    ["sig", "SIG", "token", "X-Amz-Signature", "X-Amz-Security-Token", "AWSAccessKeyId", "password", "secret", "key"]
)
PATHS = st.lists(st.text(string.ascii_letters + string.digits + ":@=.-_", max_size=9), max_size=4).map("/".join)


@given(SCHEMES, USERS, SECRETS, PATHS)
@example("s3a", "KEY", "abc/def", "x")
@example("jdbc", "user", "p@ss", "x")
@example("jdbc", "user", "two words", "x")
def test_no_password_is_left(scheme: str, user: str, password: str, place: str) -> None:
    shown = redact(f'[corpus] path = "{scheme}://{user}:{password}@bucket.host/{place}": there is nothing')
    assert "§" not in shown
    assert password not in shown
    assert shown.startswith(f'[corpus] path = "{scheme}://(redacted)@')
    assert shown.endswith('": there is nothing')


@given(SCHEMES, PATHS, NAMES, IN_QUERIES)
@example("https", "x", "sig", "SECRET")
def test_no_key_is_left_in_a_query(scheme: str, place: str, name: str, secret: str) -> None:
    shown = redact(f"{scheme}://bucket/{place}?sv=2024&{name}={secret}&sp=r")
    assert "§" not in shown
    assert shown.endswith(f"?sv=2024&{name}=(redacted)&sp=r")


@pytest.mark.parametrize("digits", ["1", "8020", "65535"])
def test_a_key_of_amazon_may_begin_as_a_port_does(digits: str) -> None:
    assert redact(f"s3a://KEY:{digits}/abc@bucket/x") == "s3a://(redacted)@bucket/x"


@given(st.sampled_from(["", "file://", "s3a://bucket", "hdfs://nn:8020", "hdfs://[::1]:8020"]), PATHS)
def test_a_path_that_has_no_password_stays(root: str, place: str) -> None:
    assert redact(f"{root}/{place}") == f"{root}/{place}"


@pytest.mark.parametrize(
    "text",
    [
        "abfss://container@account.dfs.core.windows.net/x",
        "s3a://bucket/key=5/token=a:b@c",
        "https://host/x?design=flat&page=2",
        "/data/run?key=5/day@1",
        "hdfs://nn:8020/day@1 and s3a://bucket/a@b:c",
        "C:/data/me@home",
        "key=value, see me@home",
    ],
)
def test_what_tells_no_secret_stays(text: str) -> None:
    assert redact(text) == text


def test_each_uri_of_a_text_is_looked_at() -> None:
    shown = redact('from "s3a://K:a/b@one/x" to "hdfs://u:c@two/y" by https://three/z?sig=d#e, done')
    assert shown == 'from "s3a://(redacted)@one/x" to "hdfs://(redacted)@two/y" by https://three/z?sig=(redacted) done'
