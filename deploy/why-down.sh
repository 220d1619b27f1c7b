#!/usr/bin/env bash
# Prints the last lines of each service of the stack that has failed: the end of a `make up` that fails.
set -euo pipefail
cd "$(dirname "$0")/.."

facts='{{index .Config.Labels "com.docker.compose.service"}} {{.State.ExitCode}} {{.RestartCount}} '
facts+='{{with .State.Health}}{{.Status}}{{end}}'
docker compose ps --all --quiet | xargs --no-run-if-empty docker inspect --format "$facts" |
    while read -r service code restarts health; do
        # One that ends again and again may run at the moment.
        [[ $code == 0 && $health != unhealthy && ($restarts == 0 || $health == healthy) ]] ||
            docker compose logs --tail=3 "$service" </dev/null
    done
