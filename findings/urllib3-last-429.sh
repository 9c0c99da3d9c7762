#!/bin/bash
# Product: urllib3 1.26.12 (python3-urllib3 of Debian 12).
# Guess:   Retry(2) repeats a 429 with Retry-After twice and then raises
#          MaxRetryError("too many 429 error responses"), as for a listed status.
# Happens: It repeats twice, and the third 429 is returned like any response.
#          MaxRetryError comes only with 429 in status_forcelist, although
#          raise_on_status is true in both cases.
# Follows: A program that relies on the exception takes the last refusal for an
#          answer. The program tests the status, or lists 429 in status_forcelist.
set -eu
want='Retry(2): 3 requests, status 429; listed: 3 requests, MaxRetryError'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
# Unpacked here, not installed: the machine's own packages stay as they are.
chmod 755 . && apt-get download -q python3-urllib3 python3-six >log 2>&1 || { cat log; exit 1; }
for deb in *.deb; do dpkg-deb -x "$deb" root; done
cat >run.py <<'PY'
import http.server, sys, threading
sys.path.insert(0, "root/usr/lib/python3/dist-packages")
import urllib3

requests = 0
class Refuse(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global requests
        requests += 1
        self.send_response(429)
        self.send_header("Retry-After", "1")
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *args):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refuse)
threading.Thread(target=server.serve_forever, daemon=True).start()

def call(retry):
    global requests
    requests = 0
    try:
        end = "status %d" % urllib3.PoolManager(retries=retry).request("GET", "http://127.0.0.1:%d/" % server.server_port).status
    except urllib3.exceptions.MaxRetryError as err:
        end = type(err).__name__
    return "%d requests, %s" % (requests, end)

print("version: urllib3 %s (seen with 1.26.12)" % urllib3.__version__, file=sys.stderr)
print("Retry(2): %s; listed: %s" % (call(urllib3.Retry(2)), call(urllib3.Retry(2, status_forcelist=[429]))))
PY
got=$(/usr/bin/python3 run.py)
echo "seen: $got"
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: the last refusal is returned, not raised"
