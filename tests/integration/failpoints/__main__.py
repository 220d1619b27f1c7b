"""Kill at pairs of failpoints: ``python -m tests.integration.failpoints --all-pairs``.

Runs on its own servers. Prints the result of each chain; the exit code is 1 if one broke a promise.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path

from devservers.kafka import EmbeddedKafka
from devservers.postgres import EmbeddedPostgres
from outbox.clock import SystemClock
from tests.fixtures_databases import make_database, make_template
from tests.integration.failpoints.fixtures_crashes import KILL_POINTS, run
from tests.integration.failpoints.fixtures_environment import CrashEnvironment, open_environment
from tests.integration.failpoints.fixtures_pairs import Chain, all_chains, pairs_of, sample


def main() -> int:
    """Run the chains that the arguments select."""
    arguments = _parser().parse_args()
    failed, clock = list[Chain](), SystemClock()
    work = _wanted(arguments)
    with ExitStack() as stack:
        environment: CrashEnvironment | None = None
        for number, lives in enumerate(work, 1):
            environment = environment or stack.enter_context(_environment())
            began = clock.monotonic()
            try:
                result = f"{run(environment, lives)} messages"
            except AssertionError as error:
                result = f"FAILED: {error}"
                failed.append(lives)
                stack.close()
                environment = None
            seconds = clock.monotonic() - began
            _print(f"{number}/{len(work)} {' then '.join(lives)}: {result}, {seconds:.1f} s")
    pairs = sum(len(pairs_of(lives)) for lives in work)
    _print(f"{pairs} pairs in {len(work)} chains; {len(failed)} chains broke a promise")
    return 1 if failed else 0


def _wanted(arguments: argparse.Namespace) -> Sequence[Chain]:
    """Return what to run: single pairs if names are given, else chains."""
    if arguments.only:
        pairs = product(KILL_POINTS, KILL_POINTS)
        return [pair for pair in pairs if all(part in " ".join(pair) for part in arguments.only)]
    chains = all_chains() if arguments.all_pairs else sample(arguments.seed, arguments.count)
    return chains[arguments.begin - 1 :: arguments.every]


@contextmanager
def _environment() -> Iterator[CrashEnvironment]:
    """Yield new stores for the block, so that the next pair does not repeat a fault."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="failpoints-")))
        postgres, kafka = EmbeddedPostgres(folder / "postgres"), EmbeddedKafka(folder / "kafka")
        for server in (postgres, kafka):
            stack.callback(server.erase)
            stack.callback(server.stop)
            server.start()
        url = make_database(postgres.database_url, make_template(postgres.database_url))
        yield stack.enter_context(open_environment(url, kafka.bootstrap_servers, folder))


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="failpoints", description=__doc__)
    parser.add_argument("--all-pairs", action="store_true", help="every ordered pair, about 1 h")
    parser.add_argument("--seed", type=int, default=1, help="of a sample")
    parser.add_argument("--count", type=int, default=3, help="chains of a sample")
    parser.add_argument("--begin", type=int, default=1, help="the first chain to run")
    parser.add_argument("--every", type=int, default=1, help="run every nth chain")
    parser.add_argument(
        "--only", nargs="*", default=[], help="single pairs whose names have these parts"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
