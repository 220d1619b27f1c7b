#!/usr/bin/env bash
# Says in one line each what this machine lacks; used by `make setup`.
#   needs.sh PYTHON
set -euo pipefail

python=${1:-python3}
missing=0

lacks() {
    echo "missing: $1" >&2
    missing=1
}

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    lacks "Python 3.11 or newer as $python: install it (apt-get install python3 python3-venv) or name one: make PYTHON=/path/to/python3.11"
elif ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    lacks "Python's venv module for $python: install it (apt-get install python3-venv)"
fi
java_version=$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' || true)
[[ ${java_version:-0} -ge 17 ]] ||
    lacks "Java 17 or newer: install it (apt-get install openjdk-17-jre-headless)"
command -v mvn >/dev/null ||
    lacks "Maven: install it (apt-get install maven)"
[[ $(uname -sm) == "Linux x86_64" ]] ||
    lacks "Linux on x86_64: the embedded PostgreSQL is built only for it"

exit $missing
