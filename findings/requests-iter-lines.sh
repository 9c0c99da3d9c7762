#!/bin/bash
# Product: requests 2.28.1 (python3-requests of Debian 12), Response.iter_lines.
# Guess:   iter_lines(decode_unicode=True) gives the lines of an event stream: they end at
#          CR LF, CR or LF, however the stream is cut into chunks.
# Happens: Text lines also end at U+2028 and U+0085, which JSON may hold unescaped: the data
#          of one event becomes two lines, and neither is JSON. A CR LF whose two characters
#          come in two chunks ends a line twice: the empty line between ends the event early.
#          Lines of bytes have only the second fault.
# Follows: A reader of token streams that is built on iter_lines fails on rare texts and at
#          rare moments. It reads bytes (iter_content) and splits them itself.
set -eu
want='separators: text 2 lines, bytes 1 line; CR LF in two chunks: 2 lines, 1 of them empty'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
# Unpacked here, not installed: the machine's own packages stay as they are.
chmod 755 . && apt-get download -q python3-requests python3-urllib3 python3-six python3-chardet python3-idna python3-certifi >log 2>&1 || { cat log; exit 1; }
for deb in *.deb; do dpkg-deb -x "$deb" root; done
cat >run.py <<'PY'
import http.server, json, sys, threading, time
sys.path.insert(0, "root/usr/lib/python3/dist-packages")
import requests

answers = {
    "/separators": [("data: %s\n" % json.dumps({"text": "one\u2028two"}, ensure_ascii=False)).encode()],
    "/chunks": [b"data: 1\r", b"\n"],
}

class Stream(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in answers[self.path] + [b""]:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.flush()
            time.sleep(0.2)
    def log_message(self, *args):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stream)
threading.Thread(target=server.serve_forever, daemon=True).start()

def lines(path, **options):
    with requests.get("http://127.0.0.1:%d%s" % (server.server_port, path), stream=True) as resp:
        return list(resp.iter_lines(chunk_size=None, **options))

print("version: requests %s (seen with 2.28.1)" % requests.__version__, file=sys.stderr)
text, raw, cut = lines("/separators", decode_unicode=True), lines("/separators"), lines("/chunks")
print("separators: text %d lines, bytes %d line; CR LF in two chunks: %d lines, %d of them empty" % (len(text), len(raw), len(cut), cut.count(b"")))
PY
got=$(/usr/bin/python3 run.py)
echo "seen: $got"
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: the lines of iter_lines are not those of the stream"
