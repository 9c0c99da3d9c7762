#!/bin/bash
# Product: net/http of Go 1.26, Server, HTTP/1.1; Node's http for comparison.
# Guess:   A handler that refuses with 503 and returns without reading the body is
#          answered at once, whatever the client still sends.
# Happens: Before the answer is written, the server reads up to 256 KiB of the body.
#          A client that pauses within a short or a chunked body gets no answer
#          until it goes on. With a Content-Length above 256 KiB the answer comes at
#          once. Node answers at once in all cases.
# Follows: A limiter that refuses uploads early must say so to the server, or the
#          refusal waits for exactly the slow clients that it is meant for.
set -eu
want='chunked: go waits, node answers; 1 KiB: go waits, node answers; 1 MiB: go answers, node answers'
dir=$(mktemp -d)
node_pid=
trap 'test -z "$node_pid" || kill "$node_pid" 2>/dev/null; rm -rf "$dir"' EXIT
cd "$dir"
printf 'module finding\n\ngo 1.26\n' >go.mod
cat >server.js <<'JS'
const server = require('http').createServer((req, res) => { res.statusCode = 503; res.end('refused') })
server.listen(0, '127.0.0.1', () => require('fs').writeFileSync('port', String(server.address().port)))
JS
cat >main.go <<'GO'
package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"time"
)

// answer sends the start of a request, pauses, and says whether an answer comes meanwhile.
func answer(addr, framing string) string {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: a\r\n%s\r\n\r\n1\r\nx\r\n", framing)
	conn.SetReadDeadline(time.Now().Add(2 * time.Second))
	if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil && resp.StatusCode == 503 {
		return "answers"
	}
	return "waits"
}

func main() {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Error(w, "refused", 503) }))
	for i, c := range []struct{ name, framing string }{
		{"chunked", "Transfer-Encoding: chunked"}, {"1 KiB", "Content-Length: 1024"}, {"1 MiB", "Content-Length: 1048576"},
	} {
		if i > 0 {
			fmt.Print("; ")
		}
		fmt.Printf("%s: go %s, node %s", c.name, answer(service.Listener.Addr().String(), c.framing), answer("127.0.0.1:"+os.Args[1], c.framing))
	}
	fmt.Println()
}
GO
node server.js &
node_pid=$!
for _ in $(seq 100); do [ -s port ] && break; sleep 0.1; done
echo "version: $(go env GOVERSION), Node $(node --version)"
got=$(go run . "$(cat port)")
echo "a client that pauses within its body: $got"
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: an early refusal waits for up to 256 KiB of the body"
