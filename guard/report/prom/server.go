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
	// ClosedForMemory counts the connections of all listeners that were closed because memory was near its bound.
	ClosedForMemory uint64
	// Decisions are those of headgate.v1 and of HTTP.
	Decisions ServerDecisions
}

// ServerDecisions counts what clients of headgate.v1 and of HTTP have asked.
type ServerDecisions struct {
	// Streams are open now, and Receipts kept for them.
	Streams, Receipts int64
	// GRPC, Posts and Gets count messages, by protocol.
	GRPC, Posts, Gets uint64
	// GRPCRequests and HTTPRequests were asked in them. GRPCFaults and HTTPFaults could not be decided.
	GRPCRequests, HTTPRequests, GRPCFaults, HTTPFaults uint64
	// Returned requests were given back. Unknown returns had no receipt. Dropped counts receipts that
	// were not kept for a whole second. Untrusted subrequests came from peers outside trusted_proxies.
	Returned, Unknown, Dropped, Untrusted uint64
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
type serverMetrics struct {
	connections, bound, accepted, pauses, expires, callMemory, evicted, closedForMemory,
	streams, receipts, messages, requests, faults, returns, dropped, untrusted *prometheus.Desc
}

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
		closedForMemory: desc("server_connections_closed_for_memory_total",
			"Connections of clients closed because memory was near its bound."),
		streams:   desc("server_streams", "Open streams of headgate.v1."),
		receipts:  desc("server_receipts", "Requests of streams that can still be given back."),
		messages:  desc("server_messages_total", "Messages of headgate.v1 and of HTTP with requests.", "protocol"),
		requests:  desc("server_requests_total", "Requests in these messages.", "protocol"),
		faults:    desc("server_undecided_total", "Requests and messages that could not be decided.", "protocol"),
		returns:   desc("server_returns_total", "Requests that streams gave back, and those without a receipt.", "result"),
		dropped:   desc("server_receipts_dropped_total", "Receipts dropped before their time, because there were too many."),
		untrusted: desc("server_untrusted_subrequests_total", "Subrequests of peers outside trusted_proxies."),
	}
}

func (m *serverMetrics) describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		m.connections, m.bound, m.accepted, m.pauses, m.expires, m.callMemory, m.evicted, m.closedForMemory,
		m.streams, m.receipts, m.messages, m.requests, m.faults, m.returns, m.dropped, m.untrusted,
	} {
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
	ch <- counter(m.closedForMemory, s.ClosedForMemory)
	m.collectDecisions(ch, &s.Decisions)
}

func (m *serverMetrics) collectDecisions(ch chan<- prometheus.Metric, d *ServerDecisions) {
	ch <- gauge(m.streams, d.Streams)
	ch <- gauge(m.receipts, d.Receipts)
	for protocol, n := range map[string]uint64{"grpc": d.GRPC, "http_post": d.Posts, "http_get": d.Gets} {
		ch <- counter(m.messages, n, protocol)
	}
	ch <- counter(m.requests, d.GRPCRequests, "grpc")
	ch <- counter(m.requests, d.HTTPRequests, "http")
	ch <- counter(m.faults, d.GRPCFaults, "grpc")
	ch <- counter(m.faults, d.HTTPFaults, "http")
	ch <- counter(m.returns, d.Returned, "returned")
	ch <- counter(m.returns, d.Unknown, "unknown")
	ch <- counter(m.dropped, d.Dropped)
	ch <- counter(m.untrusted, d.Untrusted)
}
