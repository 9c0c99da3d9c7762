package app

import (
	"net/http"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/testkit/logs"
	"github.com/headgate/headgate/internal/testkit/redis"
)

// TestHealthFollowsDecisions: a store that answers PING and cannot write is unhealthy for gRPC, /healthcheck and
// /readyz, with and without requests. It is healthy again when it can write.
func TestHealthFollowsDecisions(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ spoil, repair []string }{
		"demoted": {[]string{"REPLICAOF", "127.0.0.1", "1"}, []string{"REPLICAOF", "NO", "ONE"}},
		"full":    {[]string{"CONFIG", "SET", "maxmemory", "1"}, []string{"CONFIG", "SET", "maxmemory", "0"}},
	} {
		for _, requests := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				store := redis.Start(t)
				i := startServer(t, serverOptions(t, "rules: [{name: a, key: [all], limits: [1000000/s]}]\n"+
					"server: {grpc: '127.0.0.1:0', http: '127.0.0.1:0', unhealthy_without_store: true}\nstore: redis://"+store.Addr))
				at := i.Addresses()
				healthy := func() bool {
					if requests {
						decideOne(t, at.HTTP)
					}
					return serving(t, at.GRPC, "ratelimit")
				}
				eventually(t, "the health", healthy)
				store.CLI(row.spoil...)
				eventually(t, "the bad health", func() bool { return !healthy() })
				if store.CLI("PING") != "PONG" {
					t.Error("the store does not answer PING")
				}
				if status, text := get(t, at.Health+"/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(text, "the store makes no decisions") {
					t.Errorf("readyz answers %d %q", status, text)
				}
				if status, _ := get(t, at.HTTP+"/healthcheck"); status != http.StatusInternalServerError {
					t.Errorf("healthcheck answers %d", status)
				}
				store.CLI(row.repair...)
				eventually(t, "the health again", healthy)
				if status, text := get(t, at.Health+"/readyz"); status != http.StatusOK {
					t.Errorf("readyz answers %d %q", status, text)
				}
			})
		}
	}
}

// TestHealthIsLogged: a normal start says nothing about the health. A store that cannot write from the start is logged, and
// then that it can.
func TestHealthIsLogged(t *testing.T) {
	t.Parallel()
	for _, spoiled := range []bool{false, true} {
		store := redis.Start(t)
		if spoiled {
			store.CLI("CONFIG", "SET", "maxmemory", "1")
		}
		var log logs.Text
		o := serverOptions(t, "rules: [{name: a, key: [all], limits: [1000000/s]}]\n"+
			"server: {grpc: '127.0.0.1:0', http: '127.0.0.1:0', unhealthy_without_store: true}\nstore_timeout: 5s\nstore: redis://"+store.Addr)
		o.Log = log.Logger()
		i := startServer(t, o)
		if spoiled {
			eventually(t, "the line", func() bool { return strings.Contains(log.String(), "unhealthy: the store makes no decisions") })
			store.CLI("CONFIG", "SET", "maxmemory", "0")
			eventually(t, "the second line", func() bool { return strings.Contains(log.String(), "healthy again") })
		}
		eventually(t, "the health", func() bool { return serving(t, i.Addresses().GRPC, "ratelimit") })
		if text := log.String(); !spoiled && strings.Contains(text, "healthy") {
			t.Errorf("a normal start logs\n%s", text)
		}
	}
}

// decideOne asks for a decision, whatever the answer.
func decideOne(t *testing.T, address string) {
	t.Helper()
	resp, err := http.Post("http://"+address+"/v1/decide", "application/json", strings.NewReader(`{"path": "/"}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode == http.StatusBadRequest {
		t.Fatal("the request is not understood")
	}
}
