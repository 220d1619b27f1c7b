"""The service refuses an address or a setting that it must not start with."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest
import structlog

from api.__main__ import main


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    """Reset the loggers that write to this test's captured stderr."""
    yield
    structlog.reset_defaults()


RING = base64.b64encode(bytes(32)).decode()


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
