package main

import (
	"net"
	"regexp"
	"strings"
	"testing"
)

// This test runs the commands of the README over a socket.
func TestReadme(t *testing.T) {
	server, err := guarded("headgate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	defer func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	for _, c := range []struct{ client, want string }{
		{"north", `^SERVING, ratelimit \["check";r=1;t=\d+\]
SERVING, ratelimit \["check";r=0;t=\d+\]
ResourceExhausted: The limit of the policy check, 2/10s, is used up: retry in \d+ s.
  retry after \d+\.?\d*s$`},
		{"south", `^SERVING, ratelimit \["check";r=1;t=\d+\]\n`},
	} {
		answers, err := call(ln.Addr().String(), c.client, 3)
		if err != nil {
			t.Fatal(err)
		}
		if said := strings.Join(answers, "\n"); !regexp.MustCompile(c.want).MatchString(said) {
			t.Errorf("client %s: got\n%s\nwant\n%s", c.client, said, c.want)
		}
	}
}
