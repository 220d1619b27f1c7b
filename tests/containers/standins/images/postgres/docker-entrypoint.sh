#!/usr/bin/env bash
# What the entry point of the official image does, as far as the stack uses it: create the database once, then run it.
set -euo pipefail
[[ ${1:-} == -* ]] && set -- postgres "$@"
if [[ ${1:-} == postgres && $(id -u) == 0 ]]; then
    mkdir -p "$PGDATA"
    chown -R postgres:postgres "$PGDATA"
    exec setpriv --reuid=postgres --regid=postgres --clear-groups "${BASH_SOURCE[0]}" "$@"
fi
if [[ ${1:-} == postgres ]]; then
    user=${POSTGRES_USER:-postgres}
    database=${POSTGRES_DB:-$user}
    [[ -n ${POSTGRES_PASSWORD_FILE:-} ]] && POSTGRES_PASSWORD=$(<"$POSTGRES_PASSWORD_FILE")
    mkdir -p "$PGDATA"
    chmod 700 "$PGDATA"
    if [[ ! -s $PGDATA/PG_VERSION ]]; then
        if [[ -z ${POSTGRES_PASSWORD:-} && ${POSTGRES_HOST_AUTH_METHOD:-} != trust ]]; then
            echo "Error: Database is uninitialized and superuser password is not specified." >&2
            exit 1
        fi
        # shellcheck disable=SC2086  # the arguments are words
        initdb --username="$user" --pwfile=<(printf '%s\n' "${POSTGRES_PASSWORD:-}") ${POSTGRES_INITDB_ARGS:-}
        printf '\nhost all all all %s\n' "${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}" >>"$PGDATA/pg_hba.conf"
        # Meanwhile only the socket answers, as in the official image.
        pg_ctl -D "$PGDATA" -o "-c listen_addresses='' -p 5432" -w start
        if [[ $database != postgres ]]; then
            psql -v ON_ERROR_STOP=1 --username="$user" --no-password --no-psqlrc --dbname=postgres \
                --set db="$database" <<<'CREATE DATABASE :"db";'
        fi
        pg_ctl -D "$PGDATA" -m fast -w stop
        echo "PostgreSQL init process complete; ready for start up."
    fi
    unset POSTGRES_PASSWORD
fi
exec "$@"
