"""Kill at pairs of failpoints: ``python -m tests.integration.failpoints --all-pairs``.

Runs on servers of its own. Says what it did, pair by pair; ends with 1 if any pair broke a promise.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from cli.embedded.kafka import EmbeddedKafka
from cli.embedded.postgres import EmbeddedPostgres
from outbox.clock import SystemClock
from tests.databases import make_database, make_template
from tests.integration.failpoints.crashes import run
from tests.integration.failpoints.ground import Ground, open_ground
from tests.integration.failpoints.pairs import Pair, all_pairs, sample


def main() -> int:
    """Run the pairs that are asked for."""
    arguments = _parser().parse_args()
    pairs = all_pairs() if arguments.all_pairs else sample(arguments.seed, arguments.count)
    pairs = [pair for pair in pairs if all(part in " ".join(pair) for part in arguments.only)]
    failed, clock = list[Pair](), SystemClock()
    with ExitStack() as stack:
        ground: Ground | None = None
        for number, pair in enumerate(pairs, 1):
            ground = ground or stack.enter_context(_ground())
            began = clock.monotonic()
            try:
                said = f"{run(ground, pair)} messages"
            except AssertionError as error:
                said = f"FAILED: {error}"
                failed.append(pair)
                stack.close()
                ground = None
            seconds = clock.monotonic() - began
            _say(f"{number}/{len(pairs)} {' then '.join(pair)}: {said}, {seconds:.1f} s")
    _say(f"{len(pairs) - len(failed)} of {len(pairs)} pairs kept every promise")
    return 1 if failed else 0


@contextmanager
def _ground() -> Iterator[Ground]:
    """Yield new stores for the block; a broken promise must not be found again by the next pair."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="failpoints-")))
        postgres, kafka = EmbeddedPostgres(folder / "postgres"), EmbeddedKafka(folder / "kafka")
        for server in (postgres, kafka):
            stack.callback(server.erase)
            stack.callback(server.stop)
            server.start()
        url = make_database(postgres.database_url, make_template(postgres.database_url))
        yield stack.enter_context(open_ground(url, kafka.bootstrap_servers, folder))


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="failpoints", description=__doc__)
    parser.add_argument("--all-pairs", action="store_true", help="every ordered pair, hours")
    parser.add_argument("--seed", type=int, default=1, help="of a sample")
    parser.add_argument("--count", type=int, default=12, help="pairs of a sample")
    parser.add_argument(
        "--only", nargs="*", default=[], help="parts of names that a pair must have"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
