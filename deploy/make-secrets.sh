#!/usr/bin/env bash
# Writes deploy/secrets/ with fresh passwords and keys, one file each, once; files that are there stay as they are.
# The owner's password and the keys of an older deploy/outbox.env are kept.
set -euo pipefail
cd "$(dirname "$0")"

[[ -e secrets ]] && exit 0

random() {
    head -c 32 /dev/urandom | base64 | tr -d '\n'
}

password() {
    head -c 24 /dev/urandom | base64 | tr -d '\n' | tr '+/' '-_'
}

kept() {
    grep -s "^$1=" outbox.env | cut -d= -f2-
}

write() {
    printf '%s' "$2" >"secrets.new/$1"
}

# The programs of a container are another user than the owner of these files: the folder keeps everyone else out.
umask 022
rm -rf secrets.new
mkdir -m 700 secrets.new

owner=$(kept POSTGRES_PASSWORD || password)
write postgres_password "$owner"
write owner_database_url "postgresql://outbox:$owner@postgres:5432/outbox"
for role in api checker; do
    login=$(password)
    write "${role}_database_url" "postgresql://outbox_$role:$login@postgres:5432/outbox"
    echo "ALTER ROLE outbox_$role LOGIN PASSWORD '$login';" >>secrets.new/logins.sql
done
write auth_pepper "$(kept OUTBOX_AUTH_PEPPER || random)"
write encryption_keys "$(kept OUTBOX_ENCRYPTION_KEYS || random)"
mv secrets.new secrets
echo "deploy/secrets: new passwords and keys" >&2
