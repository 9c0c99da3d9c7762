//go:build soak

package acceptance

import (
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/backend"
)

const blanksConfiguration = `version: 1
max_memory: 16MiB
rules:
  - {name: once, match: {path: /once}, key: [header:X-Api-Key], limits: ["1/1h"]}
  - name: login
    match: {path: /login}
    key: [header:X-Api-Key]
    limits: ["3/1h"]
    ban: {after: "3/1h", for: 1h}
proxy:
  listen: "127.0.0.1:0"
  upstream: "%%s"
%s`

// TestSoakBlanksAroundValues: the client K has used its limit and is banned. The test sends K
// with blanks around it, and K on 1 to 500 continued lines. No request passes, and no key is
// added.
func TestSoakBlanksAroundValues(t *testing.T) {
	plain := httptest.NewServer(page())
	defer plain.Close()
	for name, at := range map[string]string{"net/http": plain.URL, "nginx": "unix:" + backend.Nginx(t), "Node": "unix:" + backend.Node(t)} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			b := blanks{sent: map[string]int{}}
			b.attack(t, start(t, fmt.Sprintf(blanksConfiguration, ""), at), nil)
			ca := newAuthority(t)
			server := ca.issue(t, "proxy.example", 2)
			files := fmt.Sprintf("  tls: {cert: %s, key: %s}\n", server.cert, server.key)
			trusting := &tls.Config{RootCAs: ca.pool(), ServerName: "proxy.example", MinVersion: tls.VersionTLS12}
			b.attack(t, start(t, fmt.Sprintf(blanksConfiguration, files), at), trusting)
			t.Logf("before %s in %v: answers by protocol and status %v, none passed, no key added", name, time.Since(began).Round(time.Second), b.sent)
		})
	}
}

// blanks counts answers by protocol and status.
type blanks struct{ sent map[string]int }

// attack sends every form of K to both rules.
func (b *blanks) attack(t *testing.T, i *instance, trusting *tls.Config) {
	t.Helper()
	for range 5 {
		b.fields(t, i, trusting, "/login", "K")
	}
	b.fields(t, i, trusting, "/once", "K")
	before := places(t, i)
	random := rand.New(rand.NewPCG(1, 12))
	for n := range 500 {
		for _, path := range []string{"/once", "/login"} {
			for _, blank := range []string{" ", "\t", " " + blanksOf(random, 3)} {
				status := b.fields(t, i, trusting, path, "K"+strings.Repeat("\r\n"+blank, n+1))
				b.sent[fmt.Sprint("continued ", status)]++
				if status != http.StatusBadRequest {
					t.Errorf("%s, %d lines of %q: status %d, want 400", path, n+1, blank, status)
				}
			}
			b.refused(t, "HTTP/1.1", b.fields(t, i, trusting, path, blanksOf(random, 20)+"K"+blanksOf(random, 20)))
		}
	}
	for range 40 {
		b.streams(t, i, trusting, random)
	}
	if after := places(t, i); after != before {
		t.Errorf("%d keys after the attack, %d before", after, before)
	}
}

func (b *blanks) refused(t *testing.T, protocol string, status int) {
	t.Helper()
	b.sent[fmt.Sprint(protocol, " ", status)]++
	if status != http.StatusBadRequest && status != http.StatusTooManyRequests {
		t.Errorf("%s: status %d, want 400 or 429", protocol, status)
	}
}

// fields sends one request by HTTP/1.1.
func (b *blanks) fields(t *testing.T, i *instance, trusting *tls.Config, path, value string) (status int) {
	t.Helper()
	w := dial(t, "tcp", i.Proxy)
	if trusting != nil {
		w = w.secured(trusting)
	}
	defer w.Close()
	w.send(request("GET "+path+" HTTP/1.1", "Host: a", "X-Api-Key: "+value, "Connection: close"))
	return statusOr0(w.answer())
}

// streams sends fifty requests by HTTP/2, with blanks before K, after K, or both.
func (b *blanks) streams(t *testing.T, i *instance, trusting *tls.Config, random *rand.Rand) {
	t.Helper()
	conn := net.Conn(dial(t, "tcp", i.Proxy))
	protocol := "h2c"
	if trusting != nil {
		trusting, protocol = trusting.Clone(), "h2"
		trusting.NextProtos = []string{"h2"}
		conn = tls.Client(conn, trusting)
	}
	defer conn.Close()
	f := framesOn(t, conn)
	for n := range 50 {
		value := blanksOf(random, 20) + "K" + blanksOf(random, 20)
		if value == "K" {
			value += " "
		}
		path, scheme := []string{"/once", "/login"}[n%2], map[string]string{"h2c": "http", "h2": "https"}[protocol]
		got := f.until(f.open(true, headerOf(":path", path, ":scheme", scheme, "x-api-key", value)...))
		status, _ := strconv.Atoi(string(got))
		b.refused(t, protocol, status)
	}
}

// blanksOf gives up to most blanks, and in half of the calls at least one.
func blanksOf(random *rand.Rand, most int) string {
	var all strings.Builder
	for range random.IntN(2) * (1 + random.IntN(most)) {
		all.WriteByte(" \t"[random.IntN(2)])
	}
	return all.String()
}

// places gives the number of used places in the store.
func places(t *testing.T, i *instance) int {
	t.Helper()
	_, metrics := get(t, "http://"+i.Health+"/metrics")
	used := 0
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, "headgate_store_places_used") {
			n, err := strconv.Atoi(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]))
			if err != nil {
				t.Fatal(err)
			}
			used += n
		}
	}
	if used == 0 {
		t.Fatalf("no place of the store is used: %.2000s", metrics)
	}
	return used
}

// secured adds TLS to a connection.
func (w *wire) secured(trusting *tls.Config) *wire {
	conn := tls.Client(w.Conn, trusting)
	w.in.Reset(conn)
	return &wire{conn, w.t, w.in}
}
