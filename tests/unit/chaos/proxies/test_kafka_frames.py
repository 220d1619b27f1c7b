"""The proxies split and parse frames, and apply rules to them."""

from __future__ import annotations

import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.proxies.kafka_frames import (
    ADD_PARTITIONS,
    END_TXN,
    INIT_PRODUCER_ID,
    PRODUCE,
    FrameSplitter,
    NotKafka,
    Request,
    correlation_of,
    end_txn_error,
    read_request,
)
from chaos.proxies.postgres_packets import COMMIT, STARTUP, NotPostgres, PacketSplitter
from chaos.proxies.rules import Action, Rule, RuleBook

OWNER = "outbox.one.3"


def text(words: str) -> bytes:
    return struct.pack(">h", len(words)) + words.encode()


def compact(words: str) -> bytes:
    return bytes([len(words) + 1]) + words.encode()


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def request(api: int, version: int, body: bytes, *, flexible: bool = False) -> bytes:
    header = struct.pack(">hhi", api, version, 77) + text("rdkafka")
    return framed(header + (b"\0" if flexible else b"") + body)


def cut_into(stream: bytes, places: list[int]) -> list[bytes]:
    """Split a stream at these places."""
    edges = sorted({0, len(stream), *(place % (len(stream) + 1) for place in places)})
    return [stream[a:b] for a, b in pairwise(edges)]


@given(st.lists(st.binary(max_size=40), max_size=8), st.lists(st.integers(0, 10_000)))
def test_kafka_frames_do_not_depend_on_how_the_network_splits_the_stream(
    bodies: list[bytes], places: list[int]
) -> None:
    frames = [framed(body) for body in bodies]
    splitter = FrameSplitter()
    found = [frame for part in cut_into(b"".join(frames), places) for frame in splitter.feed(part)]
    assert found == frames


@given(st.lists(st.binary(max_size=40), max_size=8), st.lists(st.integers(0, 10_000)))
def test_postgresql_packets_do_not_depend_on_how_the_network_splits_the_stream(
    bodies: list[bytes], places: list[int]
) -> None:
    startup = struct.pack(">II", 12, 196608) + b"abc\0"
    packets = [startup, *(b"d" + struct.pack(">I", 4 + len(body)) + body for body in bodies)]
    splitter = PacketSplitter()
    parts = cut_into(b"".join(packets), places)
    found = [packet.data for part in parts for packet in splitter.feed(part)]
    assert found == packets


@pytest.mark.parametrize(
    ("api", "version", "body", "flexible"),
    [
        (END_TXN, 1, text(OWNER) + struct.pack(">qh?", 5, 0, True), False),
        (END_TXN, 4, compact(OWNER) + struct.pack(">qh?", 5, 0, True) + b"\0", True),
        (PRODUCE, 8, text(OWNER) + b"rest", False),
        (PRODUCE, 11, compact(OWNER) + b"rest", True),
        (INIT_PRODUCER_ID, 4, compact(OWNER) + b"rest", True),
        (ADD_PARTITIONS, 0, text(OWNER) + b"rest", False),
        (ADD_PARTITIONS, 3, compact(OWNER) + b"rest", True),
        (ADD_PARTITIONS, 5, b"\x02" + compact(OWNER) + b"rest", True),
    ],
)
def test_a_request_of_a_transaction_has_its_transactional_id(
    api: int, version: int, body: bytes, flexible: bool
) -> None:
    assert read_request(request(api, version, body, flexible=flexible)) == Request(
        api=api,
        version=version,
        correlation=77,
        client="rdkafka",
        transactional_id=OWNER,
        commits=True if api == END_TXN else None,
    )


def test_a_produce_without_a_transaction_and_a_request_without_a_client_have_no_owner() -> None:
    plain = read_request(request(PRODUCE, 8, struct.pack(">h", -1) + b"rest"))
    assert plain.transactional_id == ""
    nameless = framed(struct.pack(">hhih", 3, 4, 1, -1))
    assert (read_request(nameless).name, read_request(nameless).client) == ("3", "")


@pytest.mark.parametrize(("version", "tags"), [(1, b""), (4, b"\0")])
def test_the_answer_to_an_end_shows_whether_it_was_performed(version: int, tags: bytes) -> None:
    asked = Request(api=END_TXN, version=version, correlation=77, client="")
    answer = framed(struct.pack(">i", 77) + tags + struct.pack(">ih", 0, 47))
    assert (correlation_of(answer), end_txn_error(asked, answer)) == (77, 47)


@pytest.mark.parametrize("frame", [framed(b""), framed(b"\0\x1a"), framed(b"\0\x1a\0\1\0\0\0\1\0")])
def test_a_truncated_request_is_refused(frame: bytes) -> None:
    with pytest.raises(NotKafka):
        read_request(frame)


def test_a_stream_of_another_protocol_is_refused() -> None:
    with pytest.raises(NotKafka):
        FrameSplitter().feed(b"GET / HTTP/1.1\r\n")
    with pytest.raises(NotPostgres):
        PacketSplitter().feed(b"GET / HTTP/1.1\r\n")


@pytest.mark.parametrize(
    ("packet", "name"),
    [
        (b"Q" + struct.pack(">I", 11) + b"COMMIT\0", COMMIT),
        (b"Q" + struct.pack(">I", 13) + b"SELECT 1\0", "Q"),
        (b"P" + struct.pack(">I", 14) + b"\0COMMIT\0\0\0", COMMIT),
        (b"c" + struct.pack(">I", 4), "CopyDone"),
        (b"S" + struct.pack(">I", 4), "Sync"),
    ],
)
def test_a_commit_is_found_among_the_packets(packet: bytes, name: str) -> None:
    encryption = struct.pack(">II", 8, 80877103)
    startup = struct.pack(">II", 12, 196608) + b"abc\0"
    (first, second, third) = PacketSplitter().feed(encryption + startup + packet)
    assert [first.name, second.name, third.name] == [STARTUP, STARTUP, name]


def test_a_rule_applies_from_its_nth_frame_for_its_number_of_times() -> None:
    book = RuleBook()
    rule = Rule(name="EndTxn", action=Action.HOLD, nth=2, times=2)
    number = book.add(rule)
    struck = [book.decide("EndTxn") is not None for _ in range(5)]
    assert struck == [False, True, True, False, False]
    assert not book.is_armed(number)


def test_a_rule_can_match_one_transactional_id_and_one_kind_of_end() -> None:
    book = RuleBook()
    book.add(Rule(name="EndTxn", action=Action.HOLD, owner=".3", commits=False))
    assert book.decide("EndTxn", "outbox.one.4", False) is None
    assert book.decide("EndTxn", OWNER, True) is None
    assert book.decide("Produce", OWNER) is None
    assert book.decide("EndTxn", OWNER, False) is not None


def test_two_matching_rules_both_count_a_frame_and_the_older_applies() -> None:
    book = RuleBook()
    older = book.add(Rule(name="EndTxn", action=Action.HOLD))
    younger = book.add(Rule(name="EndTxn", action=Action.REPEAT, nth=2))
    assert [book.decide("EndTxn"), book.decide("EndTxn")] == [
        (older, Rule(name="EndTxn", action=Action.HOLD)),
        (younger, Rule(name="EndTxn", action=Action.REPEAT, nth=2)),
    ]


def test_a_disarmed_rule_no_longer_applies() -> None:
    book = RuleBook()
    number = book.add(Rule(name="EndTxn", action=Action.HOLD))
    assert book.is_armed(number)
    assert (book.remove(number), book.remove(number)) == (True, False)
    assert book.decide("EndTxn") is None
