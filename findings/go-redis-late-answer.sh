#!/bin/bash
# Product: github.com/redis/go-redis v9.23.0, with Redis 7.0.15 of Debian 12.
# Guess:   INCR is not idempotent. When its answer does not come within ReadTimeout, the
#          call fails, and the server counts at most once.
# Happens: go-redis sends the command again on the next pooled connection, up to
#          MaxRetries (3) times. A server that was only slow executes all of them:
#          one call counts 4, and returns an error.
# Follows: A slow moment of the store spends each caller's limit up to four times as
#          fast, for calls that the application believes not counted. The same holds
#          for EVAL and for commands sent with Do. Set MaxRetries: -1 for counters.
set -eu
want='one INCR: i/o timeout, counter 4; with MaxRetries -1: i/o timeout, counter 1'
dir=$(mktemp -d) pid=
trap '[ -z "$pid" ] || { kill -CONT "$pid"; kill "$pid"; } 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
cd "$dir"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
redis-server --bind 127.0.0.1 --port "$port" --save '' --appendonly no --dir "$dir" >redis.log &
pid=$!
cat >go.mod <<'GO'
module finding

go 1.26

require github.com/redis/go-redis/v9 v9.23.0
GO
cat >main.go <<'GO'
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// warm fills the pool with 8 idle connections, as after some load.
func warm(ctx context.Context, client *redis.Client) error {
	var conns []*redis.Conn
	for range 8 {
		conn := client.Conn()
		if err := conn.Ping(ctx).Err(); err != nil {
			return err
		}
		conns = append(conns, conn)
	}
	for _, conn := range conns {
		conn.Close()
	}
	return nil
}

// count sends one INCR while the server stands still for a moment, and returns the error and the counter.
func count(addr string, server, maxRetries int, key string) string {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: 300 * time.Millisecond, MaxRetries: maxRetries})
	defer client.Close()
	for start := time.Now(); warm(ctx, client) != nil; time.Sleep(50 * time.Millisecond) {
		if time.Since(start) > 10*time.Second {
			return "no connection"
		}
	}
	syscall.Kill(server, syscall.SIGSTOP)
	err := client.Incr(ctx, key).Err()
	syscall.Kill(server, syscall.SIGCONT)
	result := fmt.Sprint(err)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		result = "i/o timeout"
	}
	time.Sleep(500 * time.Millisecond) // The server reads the commands that wait in its sockets.
	reader := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: 10 * time.Second})
	defer reader.Close()
	return result + ", counter " + reader.Get(ctx, key).Val()
}

func main() {
	addr := "127.0.0.1:" + os.Args[1]
	server, err := strconv.Atoi(os.Args[2])
	if err != nil {
		panic(err)
	}
	fmt.Printf("one INCR: %s; with MaxRetries -1: %s\n", count(addr, server, 0, "retried"), count(addr, server, -1, "once"))
}
GO
go mod tidy >log 2>&1 || { cat log; exit 1; }
echo "version: go-redis v9.23.0, $(redis-server --version | cut -d' ' -f1-3), $(go env GOVERSION)"
go build -o count .
got=$(./count "$port" "$pid")
echo "the server stands still for a moment: $got"
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: a call whose answer is late counts four times"
