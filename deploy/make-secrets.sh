#!/usr/bin/env bash
# Writes the missing files of deploy/secrets: fresh passwords and keys, one file each. What is there stays as it is.
# Refuses to replace a lost password or key while the data that it opens is still there.
set -euo pipefail
cd "$(dirname "$0")"

random() {
    head -c 32 /dev/urandom | base64 | tr -d '\n'
}

password() {
    head -c 24 /dev/urandom | base64 | tr -d '\n' | tr '+/' '-_'
}

# NAME TEXT: a file appears with its whole content or not at all.
write() {
    printf '%s' "$2" >"secrets/.$1.new"
    mv "secrets/.$1.new" "secrets/$1"
    made+=("$1")
}

# NAME MAKER: a secret without which the data of the volumes is lost.
opens_the_data() {
    [[ -s secrets/$1 ]] && return
    ! data_exists || refuse "$1"
    write "$1" "$("$2")"
}

data_exists() {
    # The name of the project may be in the environment, in .env or in the compose file.
    { project=$(cd .. && SECRETS_MADE=no docker compose config | sed -n 's/^name: //p') && [[ -n $project ]] &&
        volumes=$(docker volume ls --quiet --filter "label=com.docker.compose.project=$project" \
            --filter "label=com.docker.compose.volume=postgres-data") && named=$(docker volume ls --quiet) &&
        # One that was copied from another machine by hand lacks the labels, and compose uses it all the same.
        volume=${volumes:-$(grep -Fx "${project}_postgres-data" <<<"$named" || true)}; } || {
        echo "Nobody can say whether there is data that new secrets would not open: start Docker, then try again." >&2
        exit 2
    }
    [[ -n $volume ]]
}

refuse() {
    local newest
    newest=$(cd .. && { find backups -maxdepth 2 -name secrets -not -path '*.part/*' 2>/dev/null || true; } | sort | tail -1)
    newest=${newest:-FOLDER/secrets}
    {
        echo "deploy/secrets/$1 is missing, and the volume $volume holds data that a new one cannot open."
        echo "Put the folder back from its backup: cp -a $newest/. deploy/secrets/"
        echo "Without a backup the data can be opened all the same: docs/containers.md, Secrets."
    } >&2
    exit 2
}

# The programs of a container are another user than the owner of these files: the folder keeps everyone else out.
umask 022
mkdir -p -m 700 secrets
made=()

opens_the_data postgres_password password
opens_the_data auth_pepper random
opens_the_data encryption_keys random
[[ -s secrets/owner_database_url ]] ||
    write owner_database_url "postgresql://outbox:$(<secrets/postgres_password)@postgres:5432/outbox"
# The service `logins` sets these passwords at each start, so they may be new at any time.
logins=
for role in api checker reconcile; do
    file=${role}_database_url
    [[ -s secrets/$file ]] || write "$file" "postgresql://outbox_$role:$(password)@postgres:5432/outbox"
    login=$(sed 's|.*:\(.*\)@.*|\1|' "secrets/$file")
    logins+="ALTER ROLE outbox_$role LOGIN PASSWORD '$login';"$'\n'
done
[[ $logins == "$(cat secrets/logins.sql 2>/dev/null)"$'\n' ]] || write logins.sql "$logins"
[[ -s secrets/grafana_password ]] || write grafana_password "$(password)"
# The last one: deploy/first-step.yml lets compose begin.
[[ -s secrets/.env ]] || write .env SECRETS_MADE=yes
((${#made[@]} == 0)) || echo "deploy/secrets: made ${made[*]}" >&2
