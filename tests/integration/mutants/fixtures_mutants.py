"""All mutants of the product: what users rely on, broken in one place at a time.

``python -m pytest -m deep tests/integration/mutants`` breaks each and runs its killer.
"""

from __future__ import annotations

from typing import Final

from tests.integration.mutants.lists.fixtures_access_mutants import ACCESS_MUTANTS
from tests.integration.mutants.lists.fixtures_api_mutants import API_MUTANTS
from tests.integration.mutants.lists.fixtures_check_queue_mutants import CHECK_MUTANTS
from tests.integration.mutants.lists.fixtures_checker_mutants import CHECKER_MUTANTS
from tests.integration.mutants.lists.fixtures_client_mutants import CLIENT_MUTANTS
from tests.integration.mutants.lists.fixtures_console_mutants import CONSOLE_MUTANTS
from tests.integration.mutants.lists.fixtures_library_mutants import LIBRARY_MUTANTS
from tests.integration.mutants.lists.fixtures_message_mutants import MESSAGE_MUTANTS
from tests.integration.mutants.lists.fixtures_operator_mutants import OPERATOR_MUTANTS
from tests.integration.mutants.lists.fixtures_retention_mutants import RETENTION_MUTANTS
from tests.integration.mutants.lists.fixtures_settlement_mutants import SETTLEMENT_MUTANTS

MUTANTS: Final = (
    *LIBRARY_MUTANTS,
    *MESSAGE_MUTANTS,
    *CHECK_MUTANTS,
    *RETENTION_MUTANTS,
    *OPERATOR_MUTANTS,
    *SETTLEMENT_MUTANTS,
    *API_MUTANTS,
    *ACCESS_MUTANTS,
    *CHECKER_MUTANTS,
    *CLIENT_MUTANTS,
    *CONSOLE_MUTANTS,
)
