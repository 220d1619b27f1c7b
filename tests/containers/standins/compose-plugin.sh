#!/usr/bin/env bash
# Builds Docker's compose plugin from its Go module, once, where no package of it is installed.
. "$(dirname "$0")/common.sh"

docker compose version >/dev/null 2>&1 && exit 0
version=v2.40.3
module=github.com/docker/compose/v2
scratch=$(mktemp -d)
export GOMODCACHE=$scratch/modules GOCACHE=$scratch/cache GOFLAGS=-modcacherw
trap 'rm -rf "$scratch"' EXIT

build() {
  local downloaded
  downloaded=$(cd "$scratch" && go mod download -json "$module@$version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
  # `go install` refuses a module that excludes others, so the module is built as the main one.
  cp -r "$downloaded" "$scratch/source"
  cd "$scratch/source"
  go build -trimpath -ldflags "-s -w -X $module/internal.Version=${version#v}" -o "$scratch/docker-compose" ./cmd
}
timed "compose plugin $version" build
mv "$scratch/docker-compose" "$DOCKER_CONFIG/cli-plugins/docker-compose"
