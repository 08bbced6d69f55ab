"""Which model servers may be contacted."""

from __future__ import annotations

import pytest

from rolebundle.embedding.address import permitted
from rolebundle.errors import ConfigurationError, EmbedderError


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:11434", "http://127.0.0.1:11434"),
        ("http://127.9.8.7:1234/", "http://127.9.8.7:1234"),
        ("http://localhost:8080/api/", "http://localhost:8080/api"),
        ("HTTP://LocalHost.:8080", "http://localhost:8080"),
        ("http://[::1]:11434", "http://[::1]:11434"),
        ("http://[::ffff:127.0.0.1]:11434", "http://[::ffff:127.0.0.1]:11434"),
        ("https://localhost", "https://localhost:443"),
        ("http://localhost", "http://localhost:80"),
    ],
)
def test_loopback_in_all_its_spellings(url: str, shown: str):
    address = permitted(url)
    assert address.url == shown
    assert address.local_only


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com:11434",
        "http://localhost.example.com:11434",
        "http://127.0.0.1.example.com",
        "http://2130706433:11434",
        "http://127.1:11434",
        "http://0.0.0.0:11434",
        "http://[::]:11434",
        "http://[::ffff:192.0.2.1]:11434",
        "http://128.0.0.1",
    ],
)
def test_what_only_looks_like_loopback(url: str):
    with pytest.raises(EmbedderError) as caught:
        permitted(url)
    assert caught.value.code == "host_not_local"


def test_one_other_host_may_be_named():
    address = permitted("http://GPU.lan:8000/v1", "gpu.lan")
    assert (address.url, address.local_only) == ("http://gpu.lan:8000/v1", False)
    assert not permitted("http://[2001:db8::1]:80", "[2001:db8::1]").local_only
    for other in ("gpu", "lan", "other.gpu.lan", "gpu.lan.example", "*", ""):
        with pytest.raises(EmbedderError):
            permitted("http://gpu.lan:8000", other)


def test_loopback_stays_loopback_when_it_is_named():
    assert permitted("http://localhost:80", "localhost").local_only


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:11434",
        "127.0.0.1",
        "ftp://127.0.0.1",
        "file:///etc/passwd",
        "http://",
        "http://:80",
        "http://.:80",
        "http://ⓛocalhost:80",
        "http://127.0.0.1:99999",
        "http://127.0.0.1:port",
        "http://127.0.0.1/?key=1",
        "http://127.0.0.1/#here",
        "http://[::1",
    ],
)
def test_what_is_no_url_of_a_server(url: str):
    with pytest.raises(ConfigurationError) as caught:
        permitted(url)
    assert caught.value.code == "bad_url"
    assert caught.value.hint


def test_a_password_is_refused_and_not_repeated():
    with pytest.raises(ConfigurationError) as caught:
        permitted("http://user:hunter2@127.0.0.1:80")
    assert "hunter2" not in str(caught.value)
