# Read by the scripts beside it.
#   STATE           a folder for what is made once          (~/.cache/outbox-containers)
#   DOCKER_HOST     the address of the container engine     (the engine's own)
#   DEBIAN_RELEASE  the release that the stand-ins are of   (bookworm)
#   CA_BUNDLE       the certificates that registries are trusted by
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PROJECT=$(cd "$HERE/../../.." && pwd)
STATE=${STATE:-${XDG_CACHE_HOME:-$HOME/.cache}/outbox-containers}
DEBIAN_RELEASE=${DEBIAN_RELEASE:-bookworm}
CA_BUNDLE=${CA_BUNDLE:-/etc/ssl/certs/ca-certificates.crt}
# A configuration of our own for the client: plugins, and nobody's passwords.
export DOCKER_CONFIG=$STATE/client
mkdir -p "$DOCKER_CONFIG/cli-plugins"
# The classic builder fetches nothing that a Dockerfile does not name.
export DOCKER_BUILDKIT=0

timed() { # NAME COMMAND…: run it, print how long it took
  local from=$SECONDS name=$1
  shift
  "$@"
  echo "$name: $((SECONDS - from)) s" >&2
}
