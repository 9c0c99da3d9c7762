#!/bin/bash
# Product: HAProxy 2.6.12 of Debian 12.
# Guess:   http_err_cnt counts answers of the service with a 4xx status, and malformed
#          requests. What HAProxy itself answers changes nothing.
# Happens: Each `http-request deny` counts as an error of the client. The same status
#          from `http-request return` does not.
# Follows: With a ban by http_err_cnt, refusals of a rate limit lengthen the ban and
#          may cause it: a client that only goes too fast is taken for a scanner.
#          `http-request return status 429` in place of deny keeps the two apart.
set -eu
want='after the service answers 404: 1; after deny with 429: 2; after return with 429: 2'
dir=$(mktemp -d)
pids=
trap 'kill $pids 2>/dev/null || true; rm -rf "$dir"' EXIT
cd "$dir"
port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
front=$(port)
back=$(port)
cat >haproxy.cfg <<CFG
defaults
  mode http
  timeout client 5s
  timeout server 5s
  timeout connect 5s
frontend f
  bind 127.0.0.1:$front
  stick-table type ip size 1k expire 60s store http_err_cnt
  http-request track-sc0 src
  http-request deny deny_status 429 if { path /deny }
  http-request return status 429 if { path /return }
  http-after-response set-header X-Errors %[sc_http_err_cnt(0)]
  default_backend b
backend b
  server s 127.0.0.1:$back
CFG
python3 - "$back" <<'PY' &
import http.server, sys
class Service(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(404 if self.path == "/missing" else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Service).serve_forever()
PY
pids=$!
haproxy -db -f haproxy.cfg 2>/dev/null &
pids="$pids $!"
errors() { curl -s -o /dev/null -D - "http://127.0.0.1:$front$1" | tr -d '\r' | sed -n 's/^x-errors: //ip'; }
for _ in $(seq 100); do
  [ "$(errors /)" != 0 ] || break
  sleep 0.1
done
echo "version: $(haproxy -v | sed -n 1p)"
errors /missing >missing
errors /deny >deny
errors / >after-deny # HAProxy counts a deny after it has written the answer's fields.
before=$(cat after-deny)
errors /return >return
got="after the service answers 404: $(cat missing); after deny with 429: $before; after return with 429: $(errors /)"
[ "$got" = "$want" ] || { echo "CHANGED: $got, expected $want"; exit 1; }
echo "behaviour: $got"
