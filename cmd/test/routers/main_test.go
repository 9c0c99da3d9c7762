package routers_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/leak"
	"github.com/headgate/headgate/middleware/httplimit"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

func TestMain(m *testing.M) { leak.Main(m) }

// limited is the middleware with one rule: one request an hour to /admin/*.
func limited(t *testing.T, o httplimit.Options) func(http.Handler) http.Handler {
	t.Helper()
	all, err := rule.ParsePart("all")
	if err != nil {
		t.Fatal(err)
	}
	store, err := memory.New(memory.Config{MaxMemory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Config{Store: store, Rules: []guard.Rule{{
		Rule:     rule.Rule{Name: "admin", Match: rule.Match{Path: "/admin/*"}, Key: []rule.Part{all}},
		Policies: []headgate.Policy{{Limit: headgate.Limit{Count: 1, Per: time.Hour}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return httplimit.New(g, o)
}

// service is what a router leads to. A test makes one request at a time.
type service struct {
	admin, other int
}

func (s *service) serveAdmin(http.ResponseWriter, *http.Request) { s.admin++ }

func (s *service) serveOther(http.ResponseWriter, *http.Request) { s.other++ }

// get sends a request with the target as it is, which an http.Client does not, and
// gives the status.
func get(t *testing.T, server *httptest.Server, target string) int {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: service\r\nConnection: close\r\n\r\n", target); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("GET %s: %v", target, err)
	}
	resp.Body.Close()
	return resp.StatusCode
}
