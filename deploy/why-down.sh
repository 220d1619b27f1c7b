#!/usr/bin/env bash
# Prints the last lines of each service of the stack that has failed: the end of a `make up` that fails.
set -euo pipefail
cd "$(dirname "$0")/.."

docker compose ps --all --format '{{.Service}} {{.ExitCode}} {{.Health}}' |
    while read -r service code health; do
        [[ $code == 0 && $health != unhealthy ]] || docker compose logs --tail=3 "$service" </dev/null
    done
