"""What people read is complete, can be copied, and shows a secret on a line of its own."""

from __future__ import annotations

import pytest

from cli.invocation.context import Context, Output
from cli.invocation.output import print_object, print_rows

ID = "0f6c1c0e-8d0b-4c55-9a54-6f2b7c1d9e10"
KEY = "obx_" + "k" * 120


@pytest.fixture(autouse=True)
def narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")


@pytest.fixture
def table() -> Context:
    return Context(
        output=Output.TABLE, url=None, timeout_seconds=1.0, quiet=False, color=False, yes=False
    )


def test_a_secret_that_is_shown_once_is_complete_and_alone_on_its_line(
    table: Context, capsys: pytest.CaptureFixture[str]
) -> None:
    print_object(table, {"key_id": ID, "api_key": KEY, "name": "billing"})
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == KEY
    assert lines[:2] == [f"key_id  {ID}", "name    billing"]


def test_a_long_value_is_neither_cut_off_nor_wrapped(
    table: Context, capsys: pytest.CaptureFixture[str]
) -> None:
    print_object(table, {"value": "v" * 200})
    assert capsys.readouterr().out == f"value  {'v' * 200}\n"


@pytest.mark.parametrize(
    ("columns", "printed"),
    [
        ("62", f"{ID}\n  producer group  billing-service\n  state           PREPARED\n"),
        ("63", f"message id{' ' * 28}producer group   state\n{ID}  billing-service  PREPARED\n"),
    ],
)
def test_a_list_is_a_table_where_it_has_room_and_otherwise_blocks(
    table: Context,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    columns: str,
    printed: str,
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    row = {"message_id": ID, "producer_group": "billing-service", "state": "PREPARED"}
    print_rows(table, [row], tuple(row))
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        ([], "-"),
        (False, "no"),
        ("2026-09-21T14:13:26.123456Z", "2026-09-21T14:13:26Z"),
        ("2026-09-21T14:13:26.1+02:00", "2026-09-21T14:13:26+02:00"),
        ("2026-09-21T14:13:26+00:00", "2026-09-21T14:13:26Z"),
        (["a", "b"], "a, b"),
        ({"topic": "t", "partition": 0, "offset": None}, "topic t, partition 0, offset -"),
    ],
)
def test_a_value_is_text_for_people(
    table: Context, capsys: pytest.CaptureFixture[str], value: object, shown: str
) -> None:
    print_object(table, {"it": value})
    assert capsys.readouterr().out == f"it  {shown}\n"
