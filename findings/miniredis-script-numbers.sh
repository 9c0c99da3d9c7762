#!/bin/bash
# Product: github.com/alicebob/miniredis/v2 v2.40.0 against Redis 7.0.15.
# Guess:   Both run Lua 5.1, so a script turns numbers into text in the same way.
# Happens: miniredis writes whole numbers in full. Redis writes 1e+15 for
#          tostring(1e15), and stores 1e+17 for the argument 1e17, which INCR then
#          refuses. The other way round, tonumber('1e3') is nil in miniredis.
# Follows: A limiter's script with times in microseconds, or large limits, passes
#          its tests with miniredis and fails with Redis. Scripts should format
#          numbers with string.format('%.0f', n). Tests need a real server.
set -eu
want='miniredis 1000000000000000, INCR 100000000000000001, tonumber nil; redis 1e+15, INCR error, tonumber 1000'
dir=$(mktemp -d) pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null; wait; rm -rf "$dir"' EXIT
cd "$dir"
port=$(python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])')
redis-server --port "$port" --bind 127.0.0.1 --dir "$dir" --save '' >/dev/null &
pid=$!
cat >go.mod <<'GO'
module finding

go 1.26

require (
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/redis/go-redis/v9 v9.17.2
)
GO
cat >main.go <<'GO'
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

func results(addr string) string {
	ctx := context.Background()
	db := redis.NewClient(&redis.Options{Addr: addr})
	defer db.Close()
	eval := func(script string) string {
		v, err := db.Eval(ctx, script, []string{"k"}).Result()
		switch {
		case errors.Is(err, redis.Nil):
			return "nil"
		case err != nil:
			fmt.Fprintln(os.Stderr, "INCR of 1e17:", err)
			return "error"
		}
		return fmt.Sprint(v)
	}
	return fmt.Sprintf("%s, INCR %s, tonumber %s", eval(`return tostring(1e15)`),
		eval(`redis.call('SET', KEYS[1], 1e17) redis.call('INCR', KEYS[1]) return redis.call('GET', KEYS[1])`),
		eval(`return tonumber('1e3')`))
}

func main() {
	mini, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	defer mini.Close()
	fmt.Printf("miniredis %s; redis %s\n", results(mini.Addr()), results(os.Args[1]))
}
GO
go mod tidy >log 2>&1 || { cat log; exit 1; }
go build -o run . && for _ in $(seq 100); do redis-cli -p "$port" ping >out 2>&1 && break; sleep 0.1; done
echo "version: miniredis v2.40.0, $(redis-server --version | grep -o 'v=[0-9.]*') (seen with v=7.0.15)"
got=$(./run "127.0.0.1:$port")
[ "$got" = "$want" ] || { echo "CHANGED: $got, expected $want"; exit 1; }
echo "behaviour: $got"
