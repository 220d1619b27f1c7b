"""An address of PostgreSQL: the role of each of its parts is certain, or it is refused. Pure.

A special character of the password that is not encoded would make a part of it a host, a port, a
database or a parameter, which error messages and name servers may see.
"""

from __future__ import annotations

import re
from typing import Final

from pydantic import SecretStr

_LIBPQ: Final = """
application_name channel_binding client_encoding connect_timeout dbname
fallback_application_name gssdelegation gssencmode gsslib host hostaddr keepalives
keepalives_count keepalives_idle keepalives_interval krbsrvname load_balance_hosts
max_protocol_version min_protocol_version oauth_client_id oauth_client_secret oauth_issuer
oauth_scope options passfile password port replication require_auth requirepeer scram_client_key
scram_server_key service servicefile ssl ssl_max_protocol_version ssl_min_protocol_version
sslcert sslcertmode sslcompression sslcrl sslcrldir sslkey sslkeylogfile sslmode sslnegotiation
sslpassword sslrootcert sslsni target_session_attrs tcp_user_timeout user
"""
PARAMETERS: Final = frozenset(_LIBPQ.split())
"""What libpq takes; it names any other in its error."""
_TEXT: Final = r"(?:[^%@/?#\s]|%[0-9A-Fa-f]{2})*"
_USER: Final = r"(?:[^%@/\s]|%[0-9A-Fa-f]{2})*@"
_HOST: Final = r"(?:\[[0-9A-Fa-f:.%]+\]|(?:[^%@/?#\s:,\[]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?"
_PARAMETER: Final = r"\w+=(?:[^%&=\s]|%[0-9A-Fa-f]{2})*"
_URL: Final = re.compile(
    rf"postgres(?:ql)?://(?:{_USER})?{_HOST}(?:,{_HOST})*(?:/{_TEXT})?"
    rf"(?:\?(?P<query>{_PARAMETER}(?:&{_PARAMETER})*)?)?"
)
_PAIR: Final = r"\s*(\w+)\s*=\s*(?:'(?:[^'\\]|\\.)*'|(?:[^\s'\\]|\\.)*)"
_PAIRS: Final = re.compile(rf"(?:{_PAIR})+\s*", re.ASCII)


def postgres_address(secret: SecretStr) -> SecretStr:
    """Return an address whose parts are certain; raises ValueError for any other."""
    names = _parameters(secret.get_secret_value())
    if names is None or not PARAMETERS.issuperset(names):
        rule = "percent-encode the special characters of user and password"
        raise ValueError(f"is not a PostgreSQL address (postgresql://…): {rule}")
    return secret


def _parameters(text: str) -> list[str] | None:
    """Return the names of an address's parameters; None if it has neither of the two forms."""
    url = _URL.fullmatch(text)
    if url is not None:
        return [each.partition("=")[0] for each in (url["query"] or "").split("&") if each]
    if "://" in text or _PAIRS.fullmatch(text) is None:
        return None
    return re.findall(_PAIR, text, re.ASCII)
