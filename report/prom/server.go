package prom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Server is the state of the listeners of headgate server.
type Server struct {
	Listeners []Listener
	// CallMemory is the memory of the gRPC calls in flight, in bytes. Evicted counts the
	// connections that were closed because these bytes reached their bound.
	CallMemory int64
	Evicted    uint64
}

// Listener is the state of one listener.
type Listener struct {
	// Name is grpc or http.
	Name string
	// Connections is the number of open client connections, and MaxConnections is its limit.
	// Accepted counts all connections. AcceptPauses counts how often the limit was reached.
	Connections, MaxConnections int64
	Accepted, AcceptPauses      uint64
	// CertificateExpires is the expiry of the served certificate. The zero time means a
	// listener without TLS.
	CertificateExpires time.Time
}

// serverMetrics describes the metrics of headgate server.
type serverMetrics struct{ connections, bound, accepted, pauses, expires, callMemory, evicted *prometheus.Desc }

func newServerMetrics(desc func(name, help string, labels ...string) *prometheus.Desc) *serverMetrics {
	return &serverMetrics{
		connections: desc("server_connections", "Open client connections.", "listener"),
		bound:       desc("server_connections_max", "Maximum number of open client connections.", "listener"),
		accepted:    desc("server_connections_accepted_total", "Accepted client connections.", "listener"),
		pauses:      desc("server_accept_pauses_total", "Pauses in accepting connections because the maximum was reached.", "listener"),
		expires:     desc("server_certificate_expiry_timestamp_seconds", "Time at which the served certificate expires.", "listener"),
		callMemory:  desc("server_call_memory_bytes", "Memory of the gRPC calls in flight."),
		evicted: desc("server_evicted_connections_total",
			"Connections closed because gRPC calls in flight took too much memory."),
	}
}

func (m *serverMetrics) describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.connections, m.bound, m.accepted, m.pauses, m.expires, m.callMemory, m.evicted} {
		ch <- d
	}
}

func (m *serverMetrics) collect(ch chan<- prometheus.Metric, s *Server) {
	for _, l := range s.Listeners {
		ch <- gauge(m.connections, l.Connections, l.Name)
		ch <- gauge(m.bound, l.MaxConnections, l.Name)
		ch <- counter(m.accepted, l.Accepted, l.Name)
		ch <- counter(m.pauses, l.AcceptPauses, l.Name)
		if !l.CertificateExpires.IsZero() {
			ch <- gauge(m.expires, l.CertificateExpires.Unix(), l.Name)
		}
	}
	ch <- gauge(m.callMemory, s.CallMemory)
	ch <- counter(m.evicted, s.Evicted)
}
