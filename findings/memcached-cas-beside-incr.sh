#!/bin/bash
# Product: memcached 1.6.18 (Debian 12), gets and mg beside incr.
# Guess:   The value and the CAS of one gets belong together: if another client
#          increments, the CAS is another. So a write with cas loses no increment.
# Happens: Beside incr, gets and "mg KEY v c" sometimes give the old value with the
#          CAS of the new one. A server with one thread does not, and neither does
#          mg with the flag h, which holds the item's lock.
# Follows: A limiter that counts with incr and gives units back with gets and cas
#          loses some of the counts in between, and admits too much. It needs mg
#          with h, or must not mix incr and cas on one key.
set -eu
want='gets: apart; mg v c: apart; mg v c h: together; gets with one thread: together'
dir=$(mktemp -d) pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null; wait; rm -rf "$dir"' EXIT
start() {
	port=$(python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])')
	memcached -l 127.0.0.1 -p "$port" -U 0 -m 16 -t "$1" -u nobody &
	pid=$!
	for _ in $(seq 100); do (: >"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break; sleep 0.1; done
}
cat >"$dir/reads.py" <<'PY'
import os, socket, sys, time

port, command = int(sys.argv[1]), sys.argv[2].encode() + b"\r\n"


def connect():
    return socket.create_connection(("127.0.0.1", port)).makefile("rwb", buffering=1 << 16)


first = connect()
first.write(b"set n 0 0 7\r\n1000000\r\n")
first.flush()
first.readline()
if os.fork() == 0:  # the client that increments
    end = time.monotonic() + 4
    while time.monotonic() < end:
        first.write(b"incr n 1\r\n" * 20)
        first.flush()
        for _ in range(20):
            first.readline()
    os._exit(0)
reads, conn, apart, values = 0, connect(), 0, {}
end = time.monotonic() + 3
while time.monotonic() < end:
    conn.write(command * 50)
    conn.flush()
    for _ in range(50):
        head, value = conn.readline().split(), conn.readline().strip()
        if head[0] == b"VALUE":
            cas, _ = head[4], conn.readline()
        else:
            cas = next(f[1:] for f in head[2:] if f[:1] == b"c")
        reads += 1
        if values.setdefault(cas, value) != value:
            apart += 1
            if apart == 1:
                print(f"  CAS {cas.decode()} came with {values[cas].decode()} and with {value.decode()}", file=sys.stderr)
os.wait()
print(f"  {reads} reads, {apart} with a CAS that another value had", file=sys.stderr)
print("apart" if apart else "together")
PY
echo "version: $(memcached --version) (seen with 1.6.18)"
start 4
got=
for read in 'gets n' 'mg n v c' 'mg n v c h'; do
	echo "$read"
	got="$got; ${read/ n/}: $(python3 "$dir/reads.py" "$port" "$read")"
done
kill "$pid"
wait
start 1
echo 'gets n, one thread'
got="$got; gets with one thread: $(python3 "$dir/reads.py" "$port" 'gets n')"
got=${got#; }
[ "$got" = "$want" ] || { echo "CHANGED: $got, expected $want"; exit 1; }
echo "behaviour: $got"
