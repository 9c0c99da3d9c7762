package prom

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/guard/report"
)

// TestServerMetrics gathers the metrics of two listeners, one of them with TLS.
func TestServerMetrics(t *testing.T) {
	counted := report.New(report.Config{})
	t.Cleanup(counted.Close)
	state := Server{
		Listeners: []Listener{
			{Name: "grpc", Connections: 3, MaxConnections: 9, Accepted: 4, AcceptPauses: 1, CertificateExpires: time.Unix(1e9, 0)},
			{Name: "http", Connections: 1, MaxConnections: 8},
		},
		CallMemory: 1000, Evicted: 2,
	}
	registry, err := NewRegistry(Config{Report: counted, Server: func() Server { return state }})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	Handler(registry).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	text := w.Body.String()
	for _, want := range []string{
		`headgate_server_connections{listener="grpc"} 3`, `headgate_server_connections{listener="http"} 1`,
		`headgate_server_connections_max{listener="http"} 8`, `headgate_server_connections_accepted_total{listener="grpc"} 4`,
		`headgate_server_accept_pauses_total{listener="grpc"} 1`,
		`headgate_server_certificate_expiry_timestamp_seconds{listener="grpc"} 1e+09`,
		`headgate_server_call_memory_bytes 1000`, `headgate_server_evicted_connections_total 2`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("the metrics do not have %s", want)
		}
	}
	if strings.Contains(text, `timestamp_seconds{listener="http"}`) {
		t.Error("a listener without TLS has a certificate")
	}
}
