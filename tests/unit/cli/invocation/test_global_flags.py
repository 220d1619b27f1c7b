"""Global flags are accepted anywhere on the command line."""

import pytest

from cli.invocation.global_flags import hoist_global_flags, wants_json


@pytest.mark.parametrize(
    ("typed", "understood"),
    [
        (["message", "list", "-o", "json"], ["-o", "json", "message", "list"]),
        (["status", "--quiet"], ["--quiet", "status"]),
        (["status", "--url=http://a"], ["--url=http://a", "status"]),
        (["group", "set", "x", "--check-url", "u"], ["group", "set", "x", "--check-url", "u"]),
        (["message", "show", "--", "--quiet"], ["message", "show", "--", "--quiet"]),
        (["message", "list", "-o"], ["-o", "message", "list"]),
        (["message", "list", "-ojson"], ["-ojson", "message", "list"]),
    ],
)
def test_a_global_flag_may_stand_anywhere(typed: list[str], understood: list[str]) -> None:
    assert hoist_global_flags(typed) == understood


def test_an_explicit_table_is_not_json() -> None:
    assert not wants_json(["-o", "table", "status"])
    assert not wants_json(["--output=table", "status"])
    assert not wants_json(["-otable", "status"])
    assert wants_json(["-o", "json", "status"])
    assert wants_json(["-ojsonl", "status"])
