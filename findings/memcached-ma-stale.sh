#!/bin/bash
# Product: memcached 1.6.18 (Debian 12), meta arithmetic on a stale item.
# Guess:   "md key I" marks an item as stale until it is set again. An increment
#          treats the mark in one way: it keeps it, or it removes it.
# Happens: Both. From 10 to 11 the mark stays: mg still shows X and W. From 9 to 10
#          the mark is gone, since a number with more digits than before is
#          stored as a new item.
# Follows: A limiter that marks counters as stale, to have one caller load them
#          anew, loses the mark to some increments and never sees it in tests with
#          small steps. It needs a delete, a new key, or a compare (C) with the
#          token it read.
set -eu
want='10 to 11: stale; 9 to 10: fresh'
dir=$(mktemp -d) pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null; wait; rm -rf "$dir"' EXIT
port=$(python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])')
memcached -l 127.0.0.1 -p "$port" -U 0 -m 16 -u nobody &
pid=$!
for _ in $(seq 100); do { exec 3<>"/dev/tcp/127.0.0.1/$port"; } 2>/dev/null && break; sleep 0.1; done
# call sends one command and the no-op mn. The answer ends with MN.
call() {
	printf '%s\r\nmn\r\n' "$1" >&3
	answer=
	while IFS= read -r -t 5 line <&3; do
		line=${line%$'\r'}
		[ "$line" = MN ] && break
		answer="$answer $line"
	done
	answer=${answer# }
	echo "$1  ->  ${answer:-no answer}"
}
state() { case " $answer " in *' X '*) echo stale ;; *) echo fresh ;; esac; }
echo "version: $(memcached --version) (seen with 1.6.18)"
got=
for start in 10 9; do
	call "ma from$start N60 J$start v"
	call "md from$start I T30"
	call "ma from$start v"
	value=${answer##* }
	call "mg from$start v c"
	got="$got; $start to $value: $(state)"
done
got=${got#; }
[ "$got" = "$want" ] || { echo "CHANGED: $got, expected $want"; exit 1; }
echo "behaviour: $got"
