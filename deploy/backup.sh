#!/usr/bin/env bash
# Saves what cannot be made again: PostgreSQL's and Kafka's data, and the secrets that open them.
#   deploy/backup.sh        writes backups/TIME/{postgres-data.tar,kafka-data.tar,secrets}
# Both stores are saved while they are stopped, so they belong to one moment. docs/containers.md says how to restore.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=backups/$(date -u +%Y%m%dT%H%M%SZ)
umask 077
mkdir -p "$folder.part"
mapfile -t running < <(docker compose --profile '*' ps --services --status running --status restarting)
trap '((${#running[@]} == 0)) || docker compose up --detach --wait "${running[@]}"' EXIT
docker compose --profile '*' stop

save() { # SERVICE PATH: write a volume to standard output
    docker compose run --rm --no-deps -T --entrypoint tar "$1" -C "$2" -cf - .
}
save postgres /var/lib/postgresql >"$folder.part/postgres-data.tar"
save kafka /var/lib/kafka/data >"$folder.part/kafka-data.tar"
cp -a deploy/secrets "$folder.part/secrets"
mv "$folder.part" "$folder"
echo "$folder" >&2
