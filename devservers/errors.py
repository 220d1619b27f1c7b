"""What can go wrong with the embedded servers.

EmbeddedError
├── ArtifactsMissing    something `make setup` fetches is not there
├── NotReachable        no unprivileged user, or no folder it could enter
└── ServerFailed        a server ended or did not answer in time
"""


class EmbeddedError(Exception):
    """An embedded server cannot be used; the text is one line for a person."""


class ArtifactsMissing(EmbeddedError):
    """Something that `make setup` fetches is missing."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is missing: run `make setup`")


class NotReachable(EmbeddedError):
    """PostgreSQL refuses to run as root, and no unprivileged user can take its place."""


class ServerFailed(EmbeddedError):
    """A server ended, or did not answer within its time."""
