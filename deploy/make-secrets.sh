#!/usr/bin/env bash
# Writes deploy/outbox.env with fresh secrets, once; a file that is there stays as it is.
set -euo pipefail
cd "$(dirname "$0")"

[[ -e outbox.env ]] && exit 0

random() {
    head -c 32 /dev/urandom | base64 | tr -d '\n'
}

password=$(head -c 24 /dev/urandom | base64 | tr -d '\n' | tr '+/' '-_')
umask 077
cat >outbox.env.new <<EOF
POSTGRES_PASSWORD=$password
OUTBOX_DATABASE_URL=postgresql://outbox:$password@postgres:5432/outbox
OUTBOX_AUTH_PEPPER=$(random)
OUTBOX_ENCRYPTION_KEYS=$(random)
EOF
mv outbox.env.new outbox.env
echo "deploy/outbox.env: new passwords and keys" >&2
