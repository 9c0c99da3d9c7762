#!/bin/bash
# Product: github.com/sethvargo/go-limiter v0.7.1, memorystore.
# Guess:   Burst(key, 10) adds 10 tokens for now. The next interval starts with the
#          configured 3 tokens again, whatever the key did before.
# Happens: The guess is right for a key that exists. For a new key, Burst makes a
#          bucket of 13 that stays: each later interval starts with 13 tokens, and
#          the limit is reported as 13.
# Follows: An operator who grants a new client 10 extra units once grants them for
#          every interval, for as long as the client is busy. A limiter has to
#          say which of the two an operation is, a credit or a new limit, and the
#          answer must not depend on whether the store knows the key.
set -eu
want='known key: 3, Burst +10, next intervals 3 3; new key: Burst 13, next intervals 13 13'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'GO'
module finding

go 1.26

require github.com/sethvargo/go-limiter v0.7.1
GO
cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/sethvargo/go-limiter/memorystore"
)

func main() {
	ctx := context.Background()
	const interval = time.Second
	store, err := memorystore.New(&memorystore.Config{Tokens: 3, Interval: interval})
	if err != nil {
		panic(err)
	}
	// spend takes tokens until a refusal and returns how many there were.
	spend := func(key string) int {
		for n := 0; ; n++ {
			_, _, _, ok, err := store.Take(ctx, key)
			if err != nil {
				panic(err)
			}
			if !ok {
				return n
			}
		}
	}
	burst := func(key string) {
		if err := store.Burst(ctx, key, 10); err != nil {
			panic(err)
		}
	}
	known := spend("known")
	burst("known")
	burst("new")
	more, first := spend("known"), spend("new")
	time.Sleep(interval)
	known2, new2 := spend("known"), spend("new")
	time.Sleep(interval)
	known3, new3 := spend("known"), spend("new")
	fmt.Printf("known key: %d, Burst +%d, next intervals %d %d; new key: Burst %d, next intervals %d %d\n",
		known, more, known2, known3, first, new2, new3)
}
GO
go mod tidy >log 2>&1 || { cat log; exit 1; }
echo "version: go-limiter v0.7.1, $(go env GOVERSION)"
got=$(go run .)
echo "tokens: $got"
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: Burst is a credit for a known key and a lasting limit for a new one"
