#!/bin/bash
# Product: golang.org/x/time v0.16.0, package rate.
# Guess:   A cancelled reservation gives its tokens back. If all of 10 waiting callers
#          cancel, all 10 tokens come back, and the next caller waits for one token.
# Happens: The order decides. If the newest cancels first, 10 tokens come back. If the
#          oldest cancels first, only the last cancel gives a token back, and the
#          next caller waits behind 9 callers that are gone.
# Follows: Callers who give up leave in the order of their arrival, so the bad order is
#          the usual one: after a crowd has left, the limiter stays idle for the whole
#          backlog. Wait cancels in the same way when its context is cancelled. With a
#          deadline in the context, Wait does not book what cannot be in time.
set -eu
want='oldest first: 1 of 10 back, next caller waits 10s; newest first: 10 of 10 back, next caller waits 1s'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'GO'
module finding

go 1.26

require golang.org/x/time v0.16.0
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"slices"
	"time"

	"golang.org/x/time/rate"
)

// cancelAll lets 10 callers reserve and cancel. It returns the tokens that came back and the wait of the next caller.
func cancelAll(order func([]*rate.Reservation)) (float64, time.Duration) {
	now := time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)
	limiter := rate.NewLimiter(rate.Every(time.Second), 1)
	limiter.AllowN(now, 1)
	var waiting []*rate.Reservation
	for range 10 {
		waiting = append(waiting, limiter.ReserveN(now, 1))
	}
	order(waiting)
	before := limiter.TokensAt(now)
	for _, r := range waiting {
		r.CancelAt(now)
	}
	back := limiter.TokensAt(now) - before
	return back, limiter.ReserveN(now, 1).DelayFrom(now)
}

func main() {
	oldBack, oldWait := cancelAll(func([]*rate.Reservation) {})
	newBack, newWait := cancelAll(slices.Reverse[[]*rate.Reservation])
	fmt.Printf("oldest first: %v of 10 back, next caller waits %v; newest first: %v of 10 back, next caller waits %v\n",
		oldBack, oldWait, newBack, newWait)
}
GO
go mod tidy >log 2>&1 || { cat log; exit 1; }
echo "version: golang.org/x/time v0.16.0, $(go env GOVERSION)"
got=$(go run .)
echo "1 token a second, 10 callers wait and cancel: $got"
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: cancelled in the order of arrival, 9 of 10 tokens are lost"
