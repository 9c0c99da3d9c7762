#!/bin/bash
# Product: go mod tidy of Go 1.26, with google.golang.org/grpc.
# Guess:   A module requires grpc v1.64.1, and a new file imports
#          google.golang.org/grpc/mem, which that version does not have. go build
#          and go mod tidy both fail and say so: the author has pinned the version.
# Happens: go build fails: no required module has the package. tidy passes: it
#          requires the latest version of grpc, and raises other modules with it.
# Follows: One import raises a library that requires the oldest version that builds,
#          and its users with it. Compare the go.mod after each tidy.
set -eu
want='build: fails; tidy: passes, and raises the pinned version'
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
export GOFLAGS=-modcacherw GOWORK=off GOTOOLCHAIN=local
cat >go.mod <<'MOD'
module example.com/adapter

go 1.24.0

require google.golang.org/grpc v1.64.1
MOD
printf 'package adapter\n\nimport _ "google.golang.org/grpc/codes"\n' >adapter.go
go mod tidy 2>/dev/null
version() { sed -nE 's#.*google.golang.org/grpc (v[^ ]+).*#\1#p' go.mod; }
echo "version: $(go version), grpc pinned at $(version) (seen with Go 1.26.8)"
printf 'package adapter\n\nimport _ "google.golang.org/grpc/mem"\n' >buffers.go
build=$(go build ./... 2>&1) && built=passes || built=fails
echo "$build" | sed 's/^/  go build: /'
tidied=$(go mod tidy 2>&1) && tidy=passes || tidy=fails
echo "$tidied" | sed 's/^/  go mod tidy: /'
now=$(version)
echo "grpc after tidy: $now"
raised=keeps
[ "$now" = v1.64.1 ] || raised=raises
got="build: $built; tidy: $tidy, and $raised the pinned version"
[ "$got" = "$want" ] || { echo "CHANGED: $got, expected $want"; exit 1; }
echo "behaviour: $got"
