"""JSON is read strictly; an error has a slug and a pointer and never repeats the input."""

from __future__ import annotations

import pytest

from api.http.json_body import Ambiguous, decode, parse, typed_in_steps
from api.http.problems import Problem
from api.ingest.schemas import END, PREPARE

GOOD = b'{"producer_group":"g","topic":"t","value":"x"}'


def test_a_valid_body_is_read() -> None:
    assert decode(GOOD, PREPARE).topic == "t"


def test_quotes_and_backslashes_inside_text_are_no_repeated_members() -> None:
    body = rb'{"producer_group":"g","topic":"t","value":"{\"a\":\"\\\\\"}","headers":{"a":"\\\""}}'
    request = decode(body, PREPARE)
    assert request.value == r'{"a":"\\"}'
    assert request.headers == {"a": r"\""}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"decision":"COMMIT"} x',
        b'{"decision":NaN}',
        b'{"decision":Infinity}',
        b'{"decision":"\xff"}',
        b'{"decision":"\xed\xa0\x80"}',
        b'\xef\xbb\xbf{"decision":"COMMIT"}',
        b'{"decision":"COMMIT",}',
        b"{'decision':'COMMIT'}",
        b'{"decision":"CO\nMMIT"}',
        b'{"a":' * 17 + b"1" + b"}" * 17,
        b"[" * 17 + b"]" * 17,
        b'[{"a":' * 8 + b"[]" + b"}]" * 8,
        b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
    ],
)
def test_invalid_or_too_deep_json_is_malformed(body: bytes) -> None:
    with pytest.raises(Problem) as refused:
        decode(body, END)
    assert refused.value.slug == "malformed-json"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (b"[]", ""),
        (b"null", ""),
        (b"{}", "/decision"),
        (b'{"decision":"COMMIT","decision":"ROLLBACK"}', "/decision"),
        (b'{"decision":"COMMIT","dec\\u0069sion":"ROLLBACK"}', "/decision"),
        (b'{"decision":"MAYBE"}', "/decision"),
        (b'{"decision":1}', "/decision"),
        (b'{"decision":null}', "/decision"),
        (b'{"decision":"COMMIT","reason":"\\ud800"}', "/reason"),
        (b'{"decision":"COMMIT","reason":"\\udc00\\ud800"}', "/reason"),
        (b'{"decision":"COMMIT","other":1}', "/other"),
        (b'{"decision":"COMMIT","<script>":1}', ""),
        (b"[" * 16 + b"]" * 16, ""),
    ],
)
def test_a_broken_schema_rule_is_named_by_its_pointer(body: bytes, pointer: str) -> None:
    with pytest.raises(Problem) as refused:
        decode(body, END)
    assert refused.value.slug == "invalid-request"
    assert [at for at, _ in refused.value.errors] == [pointer]


def test_the_callers_text_is_never_in_a_problem() -> None:
    canary = b"canary-7f3a"
    for body in (
        b'{"decision":"' + canary + b'"}',
        b'{"decision":"COMMIT","<' + canary + b'>":1}',
        b'{"decision":' + canary + b"}",
    ):
        with pytest.raises(Problem) as refused:
            decode(body, END)
        assert canary.decode() not in f"{refused.value.detail}{refused.value.errors}"


def test_parsing_a_body_without_a_type_is_as_strict() -> None:
    assert parse(b'{"a":[1,{"b":null}]}') == {"a": [1, {"b": None}]}
    with pytest.raises(Problem):
        parse(b'{"a":1,"a":1}')


def test_a_body_without_a_type_has_a_limit_of_members() -> None:
    assert len(parse(b"[" + b"1," * 19_000 + b"1]")) == 19_001
    with pytest.raises(Problem) as refused:
        parse(b"[" + b"1," * 20_000 + b"1]")
    assert refused.value.slug == "payload-too-large"


@pytest.mark.parametrize("repeated", [b'"a":1,"a":2', b'"a":"\\ud800"'])
def test_in_a_large_body_the_place_of_a_repeated_name_is_not_searched(repeated: bytes) -> None:
    body = b'{"decision":"COMMIT","reason":"' + b"," * 5000 + b'",' + repeated + b"}"
    with pytest.raises(Problem) as refused:
        decode(body, END)
    assert refused.value.slug == "invalid-request"
    with pytest.raises(Problem) as small:
        parse(b"{" + repeated + b"}")
    assert small.value.errors[0][0] == "/a"


async def test_others_have_a_turn_between_the_passes_over_a_large_body() -> None:
    turns = 0

    async def rest() -> None:
        nonlocal turns
        turns += 1

    assert (await typed_in_steps(GOOD, PREPARE, rest)).topic == "t"
    assert turns == 3
    with pytest.raises(Ambiguous):
        await typed_in_steps(GOOD[:-1] + b',"topic":"u"}', PREPARE, rest)
