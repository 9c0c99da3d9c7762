#!/bin/bash
# Product: github.com/redis/rueidis v1.0.79 with Redis 7.0.15.
# Guess:   The client notices that the server closed an idle connection. It dials
#          again before the next command, so the command succeeds.
# Happens: The next write fails with EOF. Only the command after it dials. Reads
#          are repeated by the client and show no error.
# Follows: A limiter's commands are writes. Its first decision after an idle
#          time-out of the server or of a proxy fails on each such connection.
#          The limiter should repeat the command where a repeat is safe, or
#          keep its connections busy with pings.
set -eu
want='SET EOF, SET ok, GET ok'
dir=$(mktemp -d) pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null; wait; rm -rf "$dir"' EXIT
cd "$dir"
port=$(python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])')
redis-server --port "$port" --bind 127.0.0.1 --dir "$dir" --save '' >/dev/null &
pid=$!
cat >go.mod <<'GO'
module finding

go 1.26

require github.com/redis/rueidis v1.0.79
GO
cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/redis/rueidis"
)

func main() {
	ctx := context.Background()
	open := func() rueidis.Client {
		// PipelineMultiplex -1: one connection, so that each command meets it.
		c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{os.Args[1]}, DisableCache: true, PipelineMultiplex: -1})
		if err != nil {
			panic(err)
		}
		return c
	}
	admin := open()
	text := func(err error) string {
		if err == nil || rueidis.IsRedisNil(err) {
			return "ok"
		}
		return err.Error()
	}
	// closed returns a client whose idle connection the server has closed.
	closed := func() rueidis.Client {
		c := open()
		id, err := c.Do(ctx, c.B().ClientId().Build()).AsInt64()
		if err != nil {
			panic(err)
		}
		if err := admin.Do(ctx, admin.B().Arbitrary("CLIENT", "KILL", "ID", fmt.Sprint(id)).Build()).Error(); err != nil {
			panic(err)
		}
		time.Sleep(500 * time.Millisecond)
		return c
	}
	c := closed()
	set := func() string { return text(c.Do(ctx, c.B().Set().Key("k").Value("v").Build()).Error()) }
	first, second := set(), set()
	c = closed()
	fmt.Printf("SET %s, SET %s, GET %s\n", first, second, text(c.Do(ctx, c.B().Get().Key("k").Build()).Error()))
}
GO
go mod tidy >log 2>&1 || { cat log; exit 1; }
go build -o run . && for _ in $(seq 100); do redis-cli -p "$port" ping >out 2>&1 && break; sleep 0.1; done
got=$(./run "127.0.0.1:$port")
echo "version: rueidis v1.0.79, $(redis-server --version | grep -o 'v=[0-9.]*') (seen with v=7.0.15)"
echo "after CLIENT KILL of the idle connection: $got"
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: the first write fails, the second dials"
