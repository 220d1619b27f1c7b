"""The errors of the embedded servers.

EmbeddedError
├── ArtifactsMissing    an artifact of `make setup` is missing
├── NotReachable        no unprivileged user, or no folder that it can enter
└── ServerFailed        a server ended or did not answer in time
"""


class EmbeddedError(Exception):
    """An embedded server cannot be used; the text is one readable line."""


class ArtifactsMissing(EmbeddedError):
    """Something that `make setup` fetches is missing."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is missing: run `make setup`")


class NotReachable(EmbeddedError):
    """PostgreSQL refuses to run as root, and no unprivileged user can take its place."""


class ServerFailed(EmbeddedError):
    """A server ended, or did not answer within its time."""
