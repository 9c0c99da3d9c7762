#!/bin/bash
# Product: github.com/go-redis/redis_rate/v10 v10.0.1, with Redis 7.0.15.
# Guess:   AllowN with more units than the burst can never pass. It says so: an error, or
#          RetryAfter -1, which the package uses for "allowed".
# Happens: It is refused with a finite RetryAfter, as if it fitted later. A caller that waits
#          this long and asks again is refused again, with the same time, without end.
# Follows: A caller that obeys the limiter waits for ever. A program compares n with the
#          burst before it asks; a limiter says which requests never fit.
set -eu
want='refused, again after 500ms: refused, again after 500ms'
dir=$(mktemp -d) pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
cd "$dir"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
redis-server --bind 127.0.0.1 --port "$port" --save '' --appendonly no --dir "$dir" >redis.log &
pid=$!
cat >go.mod <<'GO'
module finding

go 1.26

require (
	github.com/go-redis/redis_rate/v10 v10.0.1
	github.com/redis/go-redis/v9 v9.23.0
)
GO
cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
)

func main() {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Args[1]})
	defer client.Close()
	for start := time.Now(); client.Ping(ctx).Err() != nil && time.Since(start) < 10*time.Second; {
		time.Sleep(50 * time.Millisecond)
	}
	limiter := redis_rate.NewLimiter(client)
	ask := func() (string, time.Duration) {
		result, err := limiter.AllowN(ctx, "key", redis_rate.Limit{Rate: 10, Burst: 10, Period: time.Second}, 15)
		if err != nil {
			return err.Error(), 0
		}
		if result.Allowed > 0 {
			return "allowed", 0
		}
		return "refused", result.RetryAfter
	}
	first, wait := ask()
	time.Sleep(wait + 100*time.Millisecond)
	second, again := ask()
	round := func(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
	fmt.Printf("%s, again after %v: %s, again after %v\n", first, round(wait), second, round(again))
}
GO
go mod tidy >log 2>&1 || { cat log; exit 1; }
echo "version: redis_rate v10.0.1, $(redis-server --version | cut -d' ' -f1-3), $(go env GOVERSION)"
go build -o above .
got=$(./above "$port")
echo "15 units of a burst of 10: $got"
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: what can never pass is told to come back"
