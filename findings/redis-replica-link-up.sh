#!/bin/bash
# Product: Redis 7.0.15 (Debian 12), replication after a full sync.
# Guess:   When INFO of the replica says master_link_status:up, the stream of
#          writes flows. A write on the master arrives within milliseconds.
# Happens: The master sends no writes before it gets a REPLCONF ACK after the end
#          of the snapshot. If the first one comes too early, the next one takes up
#          to 1 s. 500 increments made in this time are missing on the replica
#          when it is promoted.
# Follows: A limiter that fails over to a fresh replica must not take "up" as
#          "in step". Without a check of the offsets, counters go back to zero and
#          spent limits are granted again. WAIT, or the acknowledged offset
#          in the master's INFO, is the safe sign.
set -eu
want='master 500, promoted replica none'
dir=$(mktemp -d) pids=
trap 'for p in $pids; do kill "$p" 2>/dev/null; done; wait; rm -rf "$dir"' EXIT
cd "$dir"
echo "version: $(redis-server --version | grep -o 'v=[0-9.]*') (seen with v=7.0.15)"
port() { python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])'; }
a=$(port) b=$(port)
for p in "$a" "$b"; do
	mkdir "$p"
	redis-server --port "$p" --bind 127.0.0.1 --dir "$dir/$p" --save '' --repl-diskless-sync yes --repl-diskless-sync-delay 0 >/dev/null &
	pids="$pids $!"
done
for p in "$a" "$b"; do
	for _ in $(seq 100); do redis-cli -p "$p" ping >out 2>&1 && break; sleep 0.1; done
done
# Whether the first acknowledgement comes too early is a matter of some
# milliseconds. The script tries up to 20 fresh replications at varying moments.
for try in $(seq 20); do
	sleep "0.$((RANDOM % 900 + 100))"
	redis-cli -p "$b" replicaof no one >/dev/null
	redis-cli -p "$a" flushall >/dev/null
	redis-cli -p "$b" replicaof 127.0.0.1 "$a" >/dev/null
	for _ in $(seq 500); do
		redis-cli -p "$b" info replication | grep -q master_link_status:up && break
		sleep 0.02
	done
	{
		for _ in $(seq 500); do echo "incr k"; done
		echo "info replication"
	} | redis-cli -p "$a" >out
	redis-cli -p "$b" info replication | grep master_link_status
	redis-cli -p "$b" replicaof no one >/dev/null
	got="master $(redis-cli -p "$a" get k), promoted replica $(redis-cli -p "$b" get k | sed 's/^$/none/')"
	echo "the master's view: $(grep slave0 out | tr -d '\r')"
	echo "try $try: $got"
	[ "$got" = "$want" ] && break
done
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: the link is up, and the writes are not there"
