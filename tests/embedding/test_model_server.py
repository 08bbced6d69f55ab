"""Which model servers may be contacted."""

from __future__ import annotations

import pytest

from rolebundle.embedding.servers import permitted_url
from rolebundle.errors import EmbedderError, UsageError


@pytest.mark.parametrize(
    ("url", "expected"),
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
def test_every_spelling_of_loopback_is_permitted(url: str, expected: str):
    assert permitted_url(url) == expected


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com:11434",
        "http://localhost.example.com:11434",
        "http://127.0.0.1.example.com",
        "http://2130706433:11434",
        "http://0.0.0.0:11434",
        "http://[::]:11434",
        "http://[::ffff:192.0.2.1]:11434",
    ],
)
def test_a_host_that_only_resembles_loopback_is_refused(url: str):
    with pytest.raises(EmbedderError) as caught:
        permitted_url(url)
    assert caught.value.code == "host_not_local"


def test_only_the_allowed_host_is_permitted_besides_this_machine():
    assert permitted_url("http://GPU.lan:8000/v1", "gpu.lan") == "http://gpu.lan:8000/v1"
    assert permitted_url("http://[2001:db8::1]:80", "[2001:db8::1]") == "http://[2001:db8::1]:80"
    for allowed_host in ("gpu", "lan", "other.gpu.lan", "gpu.lan.example", "*", ""):
        with pytest.raises(EmbedderError):
            permitted_url("http://gpu.lan:8000", allowed_host)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:11434",
        "file:///etc/passwd",
        "http://",
        "http://:80",
        "http://ⓛocalhost:80",
        "http://127.0.0.1:99999",
        "http://127.0.0.1/?key=1",
        "http://127.0.0.1/#here",
        "http://[::1",
        "//127.0.0.1:11434",
    ],
)
def test_a_malformed_url_is_refused(url: str):
    with pytest.raises(UsageError) as caught:
        permitted_url(url)
    assert caught.value.code == "bad_url"
    assert caught.value.hint


def test_a_password_in_the_url_is_refused_and_not_shown():
    with pytest.raises(UsageError) as caught:
        permitted_url("http://user:hunter2@127.0.0.1:80")
    assert "hunter2" not in str(caught.value)
