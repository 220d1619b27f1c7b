"""Run one account process: ``python -m examples.account_service --port 8101 …``.

Several processes may share one port (SO_REUSEPORT); any of them answers buyers and check-backs. The
secrets come from the environment: ACCOUNT_DATABASE_URL, ACCOUNT_CHECK_SECRET, ACCOUNT_API_KEY.
"""

import argparse
import os
import socket

import uvicorn
from sqlalchemy import create_engine

from examples.account_service.app import create_app
from examples.account_service.purchases import Purchases
from outbox_client import CheckEndpoint, TransactionProducer
from outbox_client.sqlalchemy import SqlAlchemyBarrier

REVIEW_ABOVE = 1_000


def main() -> None:
    """Serve until SIGTERM or Ctrl-C."""
    arguments = _arguments()
    engine = create_engine(os.environ["ACCOUNT_DATABASE_URL"], pool_size=20, max_overflow=20)
    purchases = Purchases(engine, SqlAlchemyBarrier(), REVIEW_ABOVE)
    group = arguments.producer_group
    key = os.environ.get("ACCOUNT_API_KEY")
    with (
        TransactionProducer(arguments.outbox_url, group, api_key=key) as producer,
        CheckEndpoint(group, os.environ["ACCOUNT_CHECK_SECRET"], purchases) as endpoint,
        shared_listener(arguments.port, arguments.host) as listener,
    ):
        app = create_app(purchases, producer, endpoint, demo_switches=arguments.demo_switches)
        config = uvicorn.Config(app, log_level="warning", lifespan="off")
        uvicorn.Server(config).run(sockets=[listener])
    engine.dispose()


def shared_listener(port: int, host: str = "127.0.0.1") -> socket.socket:
    """Return a socket on a port that other processes of this service may share."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind((host, port))
    return listener


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="account_service", description=__doc__)
    parser.add_argument("--port", type=int, required=True, help="port to listen on")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--outbox-url", required=True, metavar="URL", help="the outbox's API")
    parser.add_argument(
        *("--group", "--producer-group"),
        dest="producer_group",
        metavar="NAME",
        required=True,
        help="its producer group",
    )
    parser.add_argument(
        "--demo-switches", action="store_true", help="accept the header X-Demo-Fail"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
