#!/bin/bash
# Product: net/http and compress/gzip of Go 1.26.
# Guess:   A stream in which each event is a gzip member of its own (RFC 1952 allows it)
#          arrives event by event, as a stream with a flush after each event does.
# Happens: Each event arrives with the next one. The end of a member is returned to the
#          reader only after the header of the following member was read, so the last
#          event waits for the end of the stream. With flushes, no event waits.
# Follows: A client in Go behind a server or a proxy that compresses in members is always one
#          event late: an error event that is followed by silence does not arrive. A service
#          compresses a stream as one member and flushes it.
set -eu
want='flushes: 3 of 3 before the next event; members: 0 of 3 before the next event'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
printf 'module finding\n\ngo 1.26\n' >go.mod
cat >main.go <<'GO'
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"
)

const events = 3

// serve sends an event, waits until the client has it or a second has passed, and sends the next one. It counts what came in time.
func serve(members bool) (prompt int, err error) {
	arrived := make(chan int, events)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		var body bytes.Buffer
		zip := gzip.NewWriter(&body)
		for n := range events {
			fmt.Fprintf(zip, "data: %d\n", n)
			if members {
				zip.Close()
			} else {
				zip.Flush()
			}
			body.WriteTo(w)
			http.NewResponseController(w).Flush()
			if members {
				zip.Reset(&body)
			}
			for timeout := time.After(time.Second); ; {
				select {
				case got := <-arrived:
					if got != n {
						continue
					}
					prompt++
				case <-timeout:
				}
				break
			}
		}
		if !members {
			zip.Close()
			body.WriteTo(w)
		}
	}))
	defer server.Close()
	resp, err := http.Get(server.URL)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for n := range events {
		if want := fmt.Sprintf("data: %d", n); !lines.Scan() || lines.Text() != want {
			return 0, fmt.Errorf("%q: %w", lines.Text(), lines.Err())
		}
		arrived <- n
	}
	if lines.Scan() {
		return 0, fmt.Errorf("more: %q", lines.Text())
	}
	return prompt, nil
}

func main() {
	flushes, err := serve(false)
	if err != nil {
		panic(err)
	}
	members, err := serve(true)
	if err != nil {
		panic(err)
	}
	fmt.Printf("flushes: %d of %d before the next event; members: %d of %d before the next event\n", flushes, events, members, events)
}
GO
go build -o members .
got=$(./members)
echo "version: $(go env GOVERSION)"
echo "events that arrive: $got"
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: the last event in a gzip member waits for the next member"
