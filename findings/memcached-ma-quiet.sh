#!/bin/bash
# Product: memcached 1.6.18 (Debian 12), meta arithmetic with the flags q and v.
# Guess:   q hides plain status lines only (HD, NF). With v the answer is a value
#          line (VA), which is data and therefore always sent.
# Happens: q hides the value too, once the key exists. The call that creates the key
#          (N, J) does send its value, so the first call answers and the
#          second does not.
# Follows: A limiter that pipelines quiet increments cannot match answers to calls
#          by position. It should leave q out, or give each call an opaque token
#          (O) and end the batch with mn.
set -eu
want='first call VA 7, second call no answer, without q VA 9'
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
echo "version: $(memcached --version) (seen with 1.6.18)"
call 'ma key N60 J7 q v'
first=$answer
call 'ma key N60 J7 q v'
second=${answer:-no answer}
call 'ma key N60 J7 v'
got="first call ${first/VA 1/VA}, second call $second, without q ${answer/VA 1/VA}"
[ "$got" = "$want" ] || { echo "CHANGED: $got, expected $want"; exit 1; }
echo "behaviour: $got"
