"""The bind address of the service, and the refusal of an invalid setting."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest
import structlog

from api.__main__ import main, read_bind
from api.http.authentication.loopback_authenticator import is_loopback


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    """Reset the loggers that write to this test's captured stderr."""
    yield
    structlog.reset_defaults()


RING = base64.b64encode(bytes(32)).decode()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_addresses_are_known(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", ""])
def test_other_addresses_are_not_loopback(host: str) -> None:
    assert not is_loopback(host)


def test_a_bind_address_is_split() -> None:
    assert read_bind("[::1]:8080") == ("::1", 8080)
    assert read_bind("127.0.0.1:0") == ("127.0.0.1", 0)


@pytest.mark.parametrize(
    ("settings", "bind", "text"),
    [
        ({"AUTH_MODE": "dev-insecure"}, "0.0.0.0:0", "loopback"),
        ({"AUTH_MODE": "dev-insecure"}, "[::]:0", "loopback"),
        (
            {"AUTH_MODE": "dev-insecure"},
            "nonsense",
            "outbox-api: OUTBOX_HTTP_BIND: 'nonsense' is not host:port",
        ),
        ({"AUTH_MODE": "keys", "ENCRYPTION_KEYS": RING}, "127.0.0.1:0", "OUTBOX_AUTH_PEPPER"),
        ({"AUTH_MODE": "keys", "AUTH_PEPPER": RING}, "127.0.0.1:0", "OUTBOX_ENCRYPTION_KEYS"),
        ({"AUTH_MODE": "nobody"}, "127.0.0.1:0", "AUTH_MODE"),
        ({"AUTH_MOOD": "keys"}, "127.0.0.1:0", "AUTH_MOOD"),
    ],
)
def test_an_invalid_setting_is_one_line_and_exit_2(
    settings: dict[str, str],
    bind: str,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("OUTBOX_DATABASE_URL", "postgresql://127.0.0.1:1/none")
    monkeypatch.setenv("OUTBOX_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    for name, value in settings.items():
        monkeypatch.setenv(f"OUTBOX_{name}", value)
    assert main(["--bind", bind]) == 2
    error = capsys.readouterr().err
    assert text in error
    assert error.count("\n") == 1
