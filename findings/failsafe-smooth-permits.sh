#!/bin/bash
# Product: github.com/failsafe-go/failsafe-go v0.9.8, ratelimiter.NewSmooth.
# Guess:   TryAcquirePermits(3) succeeds after an idle time, and the calls after it
#          wait for the debt, as in Guava's smooth limiter.
# Happens: TryAcquirePermits(n) with n above 1 is refused always, however long the
#          limiter was idle. TryAcquirePermit succeeds right after that.
#          ReservePermits(3) tells a wait of 2 intervals.
# Follows: A smooth limiter without stored permits cannot serve requests with a
#          cost above 1 without a wait. A retry does not help: the caller needs a
#          call with a maximum wait, or a limiter with a burst.
set -eu
want='after 20 intervals idle: 3 permits refused, 2 refused, 1 passed; with a wait of 5 intervals: 3 passed'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'GO'
module finding

go 1.26

require github.com/failsafe-go/failsafe-go v0.9.8
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
)

func text(ok bool) string {
	if ok {
		return "passed"
	}
	return "refused"
}

func main() {
	const interval = 100 * time.Millisecond
	l := ratelimiter.NewSmooth[any](10, 10*interval)
	time.Sleep(20 * interval)
	three, two, one := l.TryAcquirePermits(3), l.TryAcquirePermits(2), l.TryAcquirePermit()
	time.Sleep(20 * interval)
	// TryReservePermits returns -1 if the wait would be too long.
	wait := l.TryReservePermits(3, 5*interval)
	fmt.Printf("after 20 intervals idle: 3 permits %s, 2 %s, 1 %s; with a wait of 5 intervals: 3 %s\n", text(three), text(two), text(one), text(wait >= 0))
}
GO
go mod tidy >log 2>&1 || { cat log; exit 1; }
echo "version: failsafe-go v0.9.8, $(go env GOVERSION)"
got=$(go run .)
[ "$got" = "$want" ] || { echo "CHANGED: $got, expected $want"; exit 1; }
echo "behaviour: $got"
