"""The errors of the embedded servers.

EmbeddedError
├── ArtifactsChanged    a fetched artifact is not the locked one
├── ArtifactsMissing    a fetched artifact is missing
├── NotReachable        no unprivileged user, or no folder that it can enter
└── ServerFailed        a server ended or did not answer in time
"""


class EmbeddedError(Exception):
    """An embedded server cannot be used; the text is one readable line."""


class ArtifactsChanged(EmbeddedError):
    """A fetched jar has another hash than the lock, is not in it, or is missing."""

    def __init__(self, folder: str, files: list[str]) -> None:
        what = ", ".join(files) or "the whole folder"
        super().__init__(
            f"{folder}: {what}: not what requirements/maven.txt has locked. Nothing of it is used."
            " If you changed a version, lock it anew; otherwise the registry sent something else"
        )


class ArtifactsMissing(EmbeddedError):
    """Something that a command fetches is missing; `make setup` fetches all that is usual."""

    def __init__(self, what: str, fetched_by: str = "make setup") -> None:
        super().__init__(f"{what} is missing: run `{fetched_by}`")


class NotReachable(EmbeddedError):
    """PostgreSQL refuses to run as root, and no unprivileged user can take its place."""


class ServerFailed(EmbeddedError):
    """A server ended, or did not answer within its time."""
