"""Settings: precedence, secrets, and an error line for whatever is wrong."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from outbox.errors import ConfigurationError
from outbox.settings.environment import load_settings, traces_are_sent
from tests.fixtures_paths import PROJECT


def test_the_page_of_settings_equals_the_catalogue() -> None:
    """After a change: `.venv/bin/python deploy/settings_page.py`."""
    page = runpy.run_path(str(PROJECT / "deploy" / "settings_page.py"))
    assert page["WRITTEN"].read_text("utf-8") == page["page"]()


def test_a_flag_wins_over_the_environment_and_the_environment_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "outbox.toml"
    file.write_text('check_max = 3\ncheck_interval_seconds = 7\nlog_level = "debug"\n')
    environment = {
        "OUTBOX_CONFIG_FILE": str(file),
        "OUTBOX_CHECK_MAX": "4",
        "OUTBOX_LOG_LEVEL": "error",
    }
    settings = load_settings(environment, {"log_level": "warning"})
    assert (settings.check_interval_seconds, settings.check_max, settings.log_level) == (
        7,
        4,
        "warning",
    )


def test_a_secret_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("postgresql://x\n")
    settings = load_settings({"OUTBOX_DATABASE_URL_FILE": str(tmp_path / "url")})
    assert settings.required_database_url() == "postgresql://x"
    assert "postgresql://x" not in repr(settings)


@pytest.mark.parametrize(
    ("environment", "line"),
    [
        (
            {"OUTBOX_CHEK_MAX": "1"},
            "OUTBOX_CHEK_MAX: no such setting; docs/reference/settings.md lists all settings",
        ),
        (
            {"OUTBOX_CHECK_MAX_FILE": "x"},
            "OUTBOX_CHECK_MAX_FILE: no such setting; docs/reference/settings.md lists all settings",
        ),
        ({"OUTBOX_CHECK_MAX": "0"}, "OUTBOX_CHECK_MAX: Input should be greater than or equal to 1"),
        ({"OUTBOX_KAFKA_CONFIG": "[]"}, "OUTBOX_KAFKA_CONFIG: is not a JSON object"),
        ({"OUTBOX_KAFKA_CONFIG": "{"}, "OUTBOX_KAFKA_CONFIG: is not JSON"),
        (
            {"OUTBOX_CONFIG_FILE": "/no"},
            "OUTBOX_CONFIG_FILE: cannot read the file that it names: No such file or directory",
        ),
        (
            {"OUTBOX_DATABASE_URL": "a", "OUTBOX_DATABASE_URL_FILE": "b"},
            "OUTBOX_DATABASE_URL_FILE: OUTBOX_DATABASE_URL is set as well; use one of them",
        ),
        (
            {"OUTBOX_MAX_AGE_SECONDS": "604800"},
            "OUTBOX_MAX_AGE_SECONDS must be below OUTBOX_RETENTION_SECONDS",
        ),
        *(
            (
                {"OUTBOX_AUTH_PEPPER": pepper},
                "OUTBOX_AUTH_PEPPER: needs at least 16 characters:"
                " for example the output of `openssl rand -base64 32`",
            )
            for pepper in ("", "short", " " * 20, "fifteen letters")
        ),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_one_line_that_names_it(environment: dict[str, str], line: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        load_settings(environment)
    assert str(refusal.value) == line


def test_a_secret_that_stands_where_its_file_belongs_is_not_printed() -> None:
    with pytest.raises(ConfigurationError) as refusal:
        load_settings({"OUTBOX_AUTH_PEPPER_FILE": "cGVwcGVyIG9mIHRoZSB0ZXN0cw=="})
    line = "OUTBOX_AUTH_PEPPER_FILE: cannot read the file that it names: No such file or directory"
    assert str(refusal.value) == line


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert('{trace_id}')",
        "https://traces.example/",
        "https://traces.example/{id}",
        "https://traces.example/{trace_id}/{trace_id}",
        'https://traces.example/{trace_id}"><script>',
        "//traces.example/{trace_id}",
    ],
)
def test_the_address_of_a_trace_viewer_is_one_of_the_web_with_one_place_for_the_trace(
    address: str,
) -> None:
    good = "https://traces.example/trace/{trace_id}?x=1#spans"
    assert load_settings({"OUTBOX_UI_TRACE_URL": good}).ui_trace_url == good
    with pytest.raises(ConfigurationError, match="OUTBOX_UI_TRACE_URL"):
        load_settings({"OUTBOX_UI_TRACE_URL": address})


@pytest.mark.parametrize("name", ["chek_max", "OUTBOX_CHECK_MAX"])
def test_an_unknown_name_in_the_file_is_refused(name: str, tmp_path: Path) -> None:
    file = tmp_path / "outbox.toml"
    file.write_text(f"{name} = 3\n")
    problem = f"no such setting '{name.lower()}'; docs/reference/settings.md lists all settings"
    with pytest.raises(ConfigurationError) as refusal:
        load_settings({"OUTBOX_CONFIG_FILE": str(file)})
    assert str(refusal.value) == f"OUTBOX_CONFIG_FILE: {file}: {problem}"


def test_a_required_setting_is_named_when_it_is_missing() -> None:
    settings = load_settings({})
    with pytest.raises(ConfigurationError, match="OUTBOX_DATABASE_URL is not set"):
        settings.required_database_url()
    with pytest.raises(ConfigurationError, match="OUTBOX_KAFKA_BOOTSTRAP_SERVERS is not set"):
        settings.required_bootstrap_servers()


def test_a_variable_of_a_producers_own_program_sets_nothing_and_is_no_error() -> None:
    assert load_settings({"OUTBOX_CHECK_SECRET": "whsec_x"}) == load_settings({})


@pytest.mark.parametrize(
    ("environment", "sent"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_the_variables_of_opentelemetry_switch_tracing_on(
    environment: dict[str, str], sent: bool
) -> None:
    assert traces_are_sent(environment) is sent
