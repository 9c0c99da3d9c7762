#!/bin/bash
# Product: Redis 7.0.15 (Debian 12), TIME and expiry within one Lua script.
# Guess:   Time stands still while a script runs: keys do not expire in it, and
#          two calls of TIME return the same time.
# Happens: Keys do not expire, but TIME goes on. A script reads with TIME that the
#          key's lifetime is over, and GET still returns the key.
# Follows: A limiter's script should read TIME once and pass the value on. With
#          two reads, one decision uses two clocks: the script's own expiry and the
#          expiry of Redis disagree.
set -eu
want='TIME went on, key still there'
dir=$(mktemp -d) pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null; wait; rm -rf "$dir"' EXIT
cd "$dir"
port=$(python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])')
redis-server --port "$port" --bind 127.0.0.1 --dir "$dir" --save '' >/dev/null &
pid=$!
for _ in $(seq 100); do redis-cli -p "$port" ping >out 2>&1 && break; sleep 0.1; done
cat >script.lua <<'LUA'
local function now()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
local start = now()
redis.call('SET', 'k', 'v', 'PX', 20)
-- Stops after 60 ms, or after a bounded number of calls if TIME stands still.
for _ = 1, 1000000 do
  if now() - start >= 60 then break end
end
local passed = now() - start
return { passed, redis.call('GET', 'k') or 'gone' }
LUA
redis-cli -p "$port" --eval script.lua >out
passed=$(sed -n 1p out) value=$(sed -n 2p out)
echo "version: $(redis-server --version | grep -o 'v=[0-9.]*') (seen with v=7.0.15)"
echo "SET k v PX 20, then TIME moved by $passed ms within the script, GET k: $value"
[ "$passed" -ge 60 ] && time='went on' || time='stood still'
[ "$value" = v ] && key='still there' || key=gone
got="TIME $time, key $key"
[ "$got" = "$want" ] || { echo "CHANGED: $got, expected $want"; exit 1; }
echo "behaviour: $got"
