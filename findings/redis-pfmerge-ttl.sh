#!/bin/bash
# Product: Redis 7.0.15 (Debian 12), PFMERGE and the lifetime of its destination.
# Guess:   A command that stores a result in a key replaces the key, so the old
#          lifetime ends, as with BITOP, SUNIONSTORE and SET.
# Happens: PFMERGE keeps the lifetime of the destination. A destination that is new
#          gets none, even if all its sources have one.
# Follows: A limit on distinct values that merges the counters of several windows
#          into one key must set the lifetime after the merge. Without that, the
#          key expires with an old window, or never.
set -eu
want='PFMERGE 100, BITOP -1, SUNIONSTORE -1, PFMERGE into a new key -1'
dir=$(mktemp -d) pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null; wait; rm -rf "$dir"' EXIT
cd "$dir"
port=$(python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])')
redis-server --port "$port" --bind 127.0.0.1 --dir "$dir" --save '' >/dev/null &
pid=$!
for _ in $(seq 100); do redis-cli -p "$port" ping >out 2>&1 && break; sleep 0.1; done
# ttl runs its arguments as commands, then returns the lifetime of the key dst.
ttl() {
	redis-cli -p "$port" flushall >/dev/null
	for command in "$@"; do redis-cli -p "$port" $command >/dev/null; done
	seconds=$(redis-cli -p "$port" ttl dst)
	# A second may pass between two commands.
	[ "$seconds" -ge 90 ] && seconds=100
	echo "$seconds"
}
merge=$(ttl 'pfadd dst a' 'expire dst 100' 'pfadd src b' 'pfmerge dst src')
bitop=$(ttl 'set dst a' 'expire dst 100' 'set src b' 'bitop or dst src')
union=$(ttl 'sadd dst a' 'expire dst 100' 'sadd src b' 'sunionstore dst src')
fresh=$(ttl 'pfadd src b' 'expire src 100' 'pfmerge dst src')
got="PFMERGE $merge, BITOP $bitop, SUNIONSTORE $union, PFMERGE into a new key $fresh"
echo "version: $(redis-server --version | grep -o 'v=[0-9.]*') (seen with v=7.0.15)"
echo "TTL of the destination, which was 100: $got"
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: only PFMERGE keeps the lifetime of what it replaces"
