#!/bin/bash
# Product: redis-py 4.3.4 (python3-redis of Debian 12), with Redis 7.0.15.
# Guess:   expire(key, timedelta(milliseconds=500)) lets the key live for half a second, or
#          for a second, or raises an error. set() with px does the first.
# Happens: The time is cut to whole seconds: EXPIRE 0, which deletes the key at once. The
#          call returns True, as for any key that exists. 1,900 ms become one second.
# Follows: A counter whose window is shorter than a second is deleted by the call that
#          should bound its life: the limit never refuses. Use pexpire for such windows.
set -eu
want='10 increments with expire(500 ms): counter at most 1, expire returned True; with pexpire: counter 10'
dir=$(mktemp -d) pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
cd "$dir"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
redis-server --bind 127.0.0.1 --port "$port" --save '' --appendonly no --dir "$dir" >redis.log &
pid=$!
# Unpacked here, not installed: the machine's own packages stay as they are.
chmod 755 . && apt-get download -q python3-redis python3-async-timeout python3-packaging python3-wrapt python3-deprecated >log 2>&1 || { cat log; exit 1; }
for deb in *.deb; do dpkg-deb -x "$deb" root; done
cat >run.py <<'PY'
import datetime, sys, time
sys.path.insert(0, "root/usr/lib/python3/dist-packages")
import redis

client = redis.Redis(port=int(sys.argv[1]))
for _ in range(200):
    try:
        client.ping()
        break
    except redis.ConnectionError:
        time.sleep(0.05)

half = datetime.timedelta(milliseconds=500)
most = {}
for name, expire in (("expire", client.expire), ("pexpire", client.pexpire)):
    for _ in range(10):
        most[name] = max(most.get(name, 0), client.incr(name))
        returned = expire(name, half)
print("version: redis-py %s (seen with 4.3.4)" % redis.__version__, file=sys.stderr)
print("10 increments with expire(500 ms): counter at most %d, expire returned %s; with pexpire: counter %d" % (most["expire"], returned, most["pexpire"]))
PY
got=$(/usr/bin/python3 run.py "$port")
echo "version: $(redis-server --version | cut -d' ' -f1-3)"
echo "seen: $got"
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: expire with less than a second deletes the key"
