#!/usr/bin/env bash
# Builds images that stand in for those that the stack is made of, under the same names: the same users, paths,
# environment and commands, from Debian's packages and the artifacts of `make setup`. They stay on this machine.
#   images.sh NAME…          (python postgres kafka prometheus nginx)
#   images.sh --names NAME…  only prints the images' names
. "$(dirname "$0")/common.sh"

base=outbox-standin/debian:$DEBIAN_RELEASE
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

image_of() { # NAME: the image that the shipped files name
  sed -nE "s/^ *(image:|FROM) +(\"?)([^ ]*\/)?($1:[^ \"]*).*/\3\4/p" \
    "$PROJECT/docker-compose.yml" "$PROJECT/deploy/Dockerfile" | head -1
}

make_base() {
  local root=$scratch/debian
  docker image inspect "$base" >/dev/null 2>&1 && return
  debootstrap --variant=minbase --include=ca-certificates "$DEBIAN_RELEASE" "$root" >"$STATE/debootstrap.log"
  # Behind a registry with a certificate of its own, containers need that certificate too.
  install -D -m 644 "$CA_BUNDLE" "$root/etc/ssl/certs/ca-certificates.crt"
  rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
  tar -C "$root" -c . | docker import - "$base" >/dev/null
}

parts() { # NAME FOLDER: add what comes from the artifacts of `make setup`
  case $1 in
    kafka)
      cp -r "$PROJECT/.runtime/kafka" "$2/libs"
      local version
      version=$(basename "$2"/libs/kafka-clients-*.jar .jar)
      mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
        "-Dartifact=org.apache.kafka:kafka-tools:${version#kafka-clients-}" "-DoutputDirectory=$2/libs"
      ;;
    postgres)
      "$PROJECT/.venv/bin/python" -c 'import sys; from pathlib import Path
from devservers.artifacts import unpack_postgres
unpack_postgres(Path(sys.argv[1]))' "$STATE/postgres"
      cp -r "$STATE"/postgres/*/. "$2/server"
      ;;
  esac
}

build() { # NAME
  local context=$scratch/$1
  docker image inspect "$(image_of "$1")" >/dev/null 2>&1 && return
  cp -r "$HERE/images/$1" "$context"
  parts "$1" "$context"
  docker build --build-arg "BASE=$base" -t "$(image_of "$1")" "$context" >"$STATE/build-$1.log" 2>&1 ||
    { tail -30 "$STATE/build-$1.log" >&2; return 1; }
}

if [[ $1 == --names ]]; then
  shift
  for name in "$@"; do image_of "$name"; done
  exit
fi
timed "$base" make_base
docker run --rm "$base" true || exit 3 # an engine that may not start containers is none
for name in "$@"; do
  timed "$(image_of "$name")" build "$name"
done
