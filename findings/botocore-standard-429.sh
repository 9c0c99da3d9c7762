#!/bin/bash
# Product: botocore 1.29.27 (python3-botocore of Debian 12).
# Guess:   The retry modes standard and adaptive repeat a 429. They are the newer
#          modes, and adaptive has a rate limiter of its own.
# Happens: Only the old mode legacy repeats a 429 by its status. standard and
#          adaptive fail at once, unless the body names a throttling error such as
#          TooManyRequestsException. A 503 is repeated in all modes.
# Follows: A limiter or gateway in front of such an API has to send the error code
#          of the API in the body. A switch from legacy to standard turns pauses
#          into errors.
set -eu
want='429: legacy 3, standard 1, adaptive 1; 429 with code: 3, 3, 3; 503: 3, 3, 3'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
# Unpacked here, not installed: the machine's own packages stay as they are.
chmod 755 . && apt-get download -q python3-{botocore,urllib3,six,jmespath,dateutil,requests,chardet,certifi,idna} >log 2>&1 || { cat log; exit 1; }
for deb in *.deb; do dpkg-deb -x "$deb" root; done
cat >run.py <<'PY'
import http.server, sys, threading
sys.path.insert(0, "root/usr/lib/python3/dist-packages")
import botocore, botocore.session
from botocore.config import Config

requests, answer = 0, (0, b"")
class Refuse(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        global requests
        requests += 1
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(answer[0])
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer[1])))
        self.end_headers()
        self.wfile.write(answer[1])
    def log_message(self, *args):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refuse)
threading.Thread(target=server.serve_forever, daemon=True).start()

def call(mode, status, body):
    global requests, answer
    requests, answer = 0, (status, body)
    client = botocore.session.Session().create_client(
        "kinesis", region_name="eu-west-1", endpoint_url="http://127.0.0.1:%d/" % server.server_port,
        aws_access_key_id="local", aws_secret_access_key="local",
        config=Config(retries={"mode": mode, "max_attempts": 2}))
    try:
        client.list_streams()
    except botocore.exceptions.ClientError as err:
        print("%s, %d %s: %d requests" % (mode, status, body.decode(), requests), file=sys.stderr)
    return requests

print("version: botocore %s (seen with 1.29.27)" % botocore.__version__, file=sys.stderr)
modes = ("legacy", "standard", "adaptive")
problem = b'{"title":"Quota Exceeded","status":429}'
coded = b'{"__type":"TooManyRequestsException"}'
print("429: %s; 429 with code: %s; 503: %s" % (
    ", ".join("%s %d" % (m, call(m, 429, problem)) for m in modes),
    ", ".join("%d" % call(m, 429, coded) for m in modes),
    ", ".join("%d" % call(m, 503, b"{}") for m in modes)))
PY
got=$(/usr/bin/python3 run.py)
[ "$got" = "$want" ] || { echo "CHANGED: $got, expected $want"; exit 1; }
echo "behaviour: requests of each mode: $got"
