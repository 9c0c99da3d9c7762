#!/bin/bash
# Product: nginx 1.22.1 of Debian 12, proxy_cache without proxy_cache_valid.
# Guess:   A 429 is never stored: RFC 6585 says that a cache must not store it, and nginx
#          stores 200, 301 and 302 only, unless proxy_cache_valid names a status.
# Happens: With Cache-Control: max-age in the answer, nginx stores a 429 as any other
#          status. The refusal of one client is then the answer to all clients until
#          max-age ends. Without the field, the guess is right.
# Follows: A service that sets max-age on all its answers turns one refusal into refusals
#          for everyone. Send Cache-Control: no-store with each 429, or set
#          proxy_no_cache for the status.
set -eu
want='429 with max-age: bob gets the refusal of alice; 429 alone: bob gets his own; 429 with no-store: bob gets his own'
dir=$(mktemp -d)
pids=
trap 'kill $pids 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
cd "$dir"
chmod 755 . && mkdir -m 777 cache temp
port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
front=$(port)
back=$(port)
cat >nginx.conf <<CONF
daemon off;
worker_processes 1;
pid $dir/pid;
error_log $dir/error.log;
events {}
http {
  access_log off;
  client_body_temp_path $dir/temp/body;
  proxy_temp_path $dir/temp/proxy;
  fastcgi_temp_path $dir/temp/fastcgi;
  uwsgi_temp_path $dir/temp/uwsgi;
  scgi_temp_path $dir/temp/scgi;
  proxy_cache_path $dir/cache keys_zone=answers:1m;
  server {
    listen 127.0.0.1:$front;
    location / {
      proxy_cache answers;
      proxy_pass http://127.0.0.1:$back;
    }
  }
}
CONF
python3 - "$back" <<'PY' &
import http.server, sys
fields = {"/max-age": "public, max-age=60", "/no-store": "no-store"}
class Service(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = ("refusal of " + self.headers.get("X-User", "nobody")).encode()
        self.send_response(429)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Retry-After", "1")
        if self.path in fields:
            self.send_header("Cache-Control", fields[self.path])
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Service).serve_forever()
PY
pids=$!
nginx -e error.log -c "$dir/nginx.conf" &
pids="$pids $!"
for _ in $(seq 100); do
  [ "$(curl -s "http://127.0.0.1:$front/ready")" != 'refusal of nobody' ] || break
  sleep 0.1
done
ask() { curl -s -H "X-User: $2" "http://127.0.0.1:$front$1"; }
# second says which refusal bob gets after alice asked for the same page.
second() {
  ask "$1" alice >first
  case $(ask "$1" bob) in
    'refusal of alice') echo 'bob gets the refusal of alice' ;;
    'refusal of bob') echo 'bob gets his own' ;;
    *) echo 'bob gets something else' ;;
  esac
}
got="429 with max-age: $(second /max-age); 429 alone: $(second /alone); 429 with no-store: $(second /no-store)"
echo "version: $(nginx -v 2>&1) (seen with 1.22.1)"
echo "proxy_cache without proxy_cache_valid: $got"
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: nginx stores a 429 that has max-age"
