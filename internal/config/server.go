package config

import (
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/headgate/headgate/internal/config/field"
)

// Server has the settings of headgate server.
type Server struct {
	GRPC ServerGRPC
	HTTP ServerHTTP
	RESP ServerRESP
	// UnhealthyWithoutStore makes the server unhealthy while a store in Redis makes no decisions.
	// Default false: it stays healthy after the store was reached once.
	UnhealthyWithoutStore bool
	// RateLimitService has the settings of Envoy's rate limit service.
	RateLimitService RateLimitService
	// Statsd are receivers of the counters of Envoy's rate limit service.
	Statsd []Statsd
	// Callers are the clients that prove who they are. CallersFile has further ones: see AllCallers.
	Callers     []Caller
	CallersFile string
	// Limits are those of the server itself.
	Limits ServerLimits
	// MaxTrafficMemory bounds the memory of the connections of all listeners, with their calls, receipts and leases, in bytes.
	// Default 960 MiB, and twice what is typical for connections and calls above their defaults.
	MaxTrafficMemory int64
}

// ServerGRPC has the settings of the gRPC listener.
type ServerGRPC struct {
	// Address is host:port, :port, unix:/path of a socket, systemd or systemd:NAME. "" means that
	// the listener is off. Default "127.0.0.1:8081".
	Address string
	// TLS has the certificates for clients. The zero value means no TLS.
	TLS TLS
	// Auth is how clients prove who they are. Default 0: not at all.
	Auth Auth
	// MaxConnections bounds the connections of clients. Default 4096.
	MaxConnections int
	// MaxConnectionsPerAddress bounds the connections of one IPv4 address or IPv6 /64.
	// Default 0: no bound.
	MaxConnectionsPerAddress int
	// MaxStreams bounds the calls in flight on one connection. Default 250.
	MaxStreams int
	// MaxCallMemory bounds the memory of the calls in flight of all connections, in bytes.
	// Default 256 MiB.
	MaxCallMemory int64
	// HandshakeTimeout bounds how long a client may take for the handshakes of TLS and HTTP/2.
	// Default 10s.
	HandshakeTimeout time.Duration
	// IdleTimeout closes a connection that has had no call for so long. Default 5m.
	IdleTimeout time.Duration
	// WriteTimeout closes a connection whose client reads nothing for so long. Default 10s.
	WriteTimeout time.Duration
	// Keepalive is the time without a byte after which the server sends a ping, and
	// KeepaliveTimeout bounds the wait for its answer. Defaults 30s and 10s.
	Keepalive, KeepaliveTimeout time.Duration
	// MaxConnectionAge is the age at which the server asks a client to connect again. Each
	// connection adds or subtracts up to a tenth of MaxConnectionAge at random. Calls in flight
	// then have MaxConnectionAgeGrace to end. Defaults 24h and 1h.
	MaxConnectionAge, MaxConnectionAgeGrace time.Duration
}

// ServerHTTP has the settings of the HTTP listener.
type ServerHTTP struct {
	// Address is as in ServerGRPC. Default "127.0.0.1:8080".
	Address string
	// TLS has the certificates for clients. The zero value means no TLS.
	TLS TLS
	// Auth is how clients prove who they are. Default 0: not at all.
	Auth Auth
	// MaxConnections bounds the connections of clients. Default 1024.
	MaxConnections int
	// MaxConnectionsPerAddress bounds the connections of one IPv4 address or IPv6 /64.
	// Default 0: no bound.
	MaxConnectionsPerAddress int
	// MaxBody bounds the body of a request, in bytes. Default 64 KiB.
	MaxBody int64
	// IdleTimeout closes a connection that has had no request for so long. Default 1m.
	IdleTimeout time.Duration
}

// ServerRESP has the settings of the listener of the Redis protocol.
type ServerRESP struct {
	// Address is as in ServerGRPC. Default "": the listener is off.
	Address string
	// TLS has the certificates for clients. The zero value means no TLS.
	TLS TLS
	// Auth is how clients prove who they are. Default 0: not at all.
	Auth Auth
	// MaxConnections bounds the connections of clients. Default 4096.
	MaxConnections int
	// MaxConnectionsPerAddress bounds the connections of one IPv4 address or IPv6 /64.
	// Default 0: no bound.
	MaxConnectionsPerAddress int
	// IdleTimeout closes a connection that has had no complete command for so long. Default 5m.
	IdleTimeout time.Duration
}

// Bounds of the server's settings.
const (
	mostStreams     = 10_000
	mostBody        = 4 << 20
	leastCallMemory = 64 << 20 // Above the costliest request, so that one client can always send one.
	mostCallMemory  = 1 << 40
	// leastServerTraffic has more than half for calls: see Config.CallMemory.
	leastServerTraffic = 128 << 20
	serverExample      = `{grpc: "127.0.0.1:8081", http: "127.0.0.1:8080"}`
	listenerExample    = `{address: "127.0.0.1:8081"}`
)

// serverDefaults returns the settings of a section without fields.
func serverDefaults() *Server {
	return &Server{
		GRPC: ServerGRPC{
			Address: "127.0.0.1:8081", MaxConnections: grpcConnections, MaxStreams: 250, MaxCallMemory: callMemory,
			HandshakeTimeout: 10 * time.Second, IdleTimeout: 5 * time.Minute, WriteTimeout: 10 * time.Second,
			Keepalive: 30 * time.Second, KeepaliveTimeout: 10 * time.Second,
			MaxConnectionAge: 24 * time.Hour, MaxConnectionAgeGrace: time.Hour,
		},
		HTTP: ServerHTTP{
			Address: "127.0.0.1:8080", MaxConnections: httpConnections, MaxBody: 64 << 10, IdleTimeout: time.Minute,
		},
		RESP:             ServerRESP{MaxConnections: respConnections, IdleTimeout: 5 * time.Minute},
		RateLimitService: rateLimitDefaults(),
		MaxTrafficMemory: serverTraffic,
	}
}

// server reads the settings of headgate server. Without the section, c.Server stays nil.
func (s *section) server(c *Config) {
	before, settings := len(s.listeners), serverDefaults()
	server := s.sub(s.declare("server", field.Taken, "Settings of headgate server."), serverExample)
	calls := server.grpcListener(&settings.GRPC)
	server.httpListener(&settings.HTTP)
	server.respListener(&settings.RESP)
	server.boolean(server.declare("unhealthy_without_store", field.Restart, "true makes /healthcheck, /readyz and the gRPC health of "+
		"ratelimit unhealthy while a store in Redis makes no decisions."), &settings.UnhealthyWithoutStore)
	server.size(server.declare("max_traffic_memory", field.Restart, "Bound of the memory of the connections of all listeners, with their "+
		"calls, receipts and leases; 128MiB to 1TiB. Near the bound, the connections with the most memory are closed."),
		&settings.MaxTrafficMemory, leastServerTraffic, mostCallMemory)
	server.checkServerTraffic(settings, calls, s.has(leaseName))
	server.rateLimitService(&settings.RateLimitService)
	server.statsd(&settings.Statsd)
	server.access(c, settings)
	server.end()
	if v, ok := server.given("unhealthy_without_store"); ok && settings.UnhealthyWithoutStore && !s.blamed("store") &&
		(c.Shared == nil || c.Shared.Kind == KindMemcached) {
		s.fault(v, "has no effect without a store in Redis", "remove it, or write store: redis://HOST:6379")
	}
	if server.begun() {
		c.Server = settings
	} else {
		s.listeners = s.listeners[:before]
	}
	// A reload can change the server, but cannot add or remove it.
	s.fixed.Add("server", c.Server == nil)
	if c.Server != nil && settings.GRPC.Address == "" && settings.HTTP.Address == "" && settings.RESP.Address == "" &&
		!server.blamedAny("grpc", "http", "resp") {
		server.withoutListener()
	}
}

// withoutListener notes that all listeners are off. The fault is at the section, or at a variable.
func (s *section) withoutListener() {
	const problem, fix = "has no listener", "write an address for grpc, http or resp, like " + serverExample
	if s.self.node == nil {
		s.note(Fault{File: variableOf(s.pathOf("grpc")), Path: s.self.path, Problem: problem, Fix: fix})
		return
	}
	s.fault(s.self, problem, fix)
}

// grpcListener reads the section grpc, or its address alone. It reports whether max_call_memory is written.
func (s *section) grpcListener(g *ServerGRPC) (calls bool) {
	grpc := s.listener(s.declare("grpc", field.Restart, "Listener of the gRPC services: an address, off, or fields."), &g.Address)
	grpc.tls(&g.TLS)
	grpc.auth(&g.Auth, &g.TLS)
	grpc.connections(&g.MaxConnections, &g.MaxConnectionsPerAddress)
	grpc.count(grpc.declare("max_streams", field.Restart, "Bound of the calls in flight on one connection. Further calls wait at the "+
		"client."), &g.MaxStreams, 1, mostStreams)
	grpc.size(grpc.declare("max_call_memory", field.Restart, "Bound of the memory of calls in flight, all connections together; 64MiB "+
		"to 1TiB. A call takes 32KiB, its request and its answer, until the client has read the answer. At the bound, the "+
		"connection with the most bytes is closed."), &g.MaxCallMemory, leastCallMemory, mostCallMemory)
	grpc.grpcTimeouts(g)
	_, calls = grpc.given("max_call_memory")
	grpc.end()
	return calls
}

// grpcTimeouts reads the durations of the section grpc.
func (s *section) grpcTimeouts(g *ServerGRPC) {
	read := func(name, text string, into *time.Duration, least, most time.Duration) {
		s.duration(s.declare(name, field.Restart, text), into, least, most)
	}
	const day, year = 24 * time.Hour, 365 * 24 * time.Hour
	read("handshake_timeout", "Longest time for the handshakes of TLS and HTTP/2; 1ms to 1d.", &g.HandshakeTimeout, leastTimeout, day)
	read("idle_timeout", "Longest time of a connection without a call; 1s to 365d.", &g.IdleTimeout, time.Second, year)
	read("write_timeout", "Longest time that a client may leave responses unread; 1s to 1d.", &g.WriteTimeout, time.Second, day)
	read("keepalive", "Time without a byte after which the server pings a client; 1s to 1d.", &g.Keepalive, time.Second, day)
	read("keepalive_timeout", "Longest wait for the answer to a ping; 1s to 1d.", &g.KeepaliveTimeout, time.Second, day)
	read("max_connection_age", "Age at which a client must connect again, up to a tenth more or less at random; 1s to 365d.",
		&g.MaxConnectionAge, time.Second, year)
	read("max_connection_age_grace", "Longest time for the calls in flight after that age; 1s to 365d.",
		&g.MaxConnectionAgeGrace, time.Second, year)
}

// httpListener reads the section http, or its address alone.
func (s *section) httpListener(h *ServerHTTP) {
	http := s.listener(s.declare("http", field.Restart, "Listener of /healthcheck and of services over HTTP: an address, off, or "+
		"fields."), &h.Address)
	http.tls(&h.TLS)
	http.auth(&h.Auth, &h.TLS)
	http.connections(&h.MaxConnections, &h.MaxConnectionsPerAddress)
	http.size(http.declare("max_body", field.Restart, "Bound of the body of a request; 1KiB to 4MiB."), &h.MaxBody, leastHeader, mostBody)
	http.duration(http.declare("idle_timeout", field.Restart, "Longest time of a connection without a request; 1ms to 1d."),
		&h.IdleTimeout, leastTimeout, mostProxyTimeout)
	http.end()
}

// respListener reads the section resp, or its address alone.
func (s *section) respListener(r *ServerRESP) {
	resp := s.listener(s.declare("resp", field.Restart, "Listener of the Redis protocol: an address, off, or fields."), &r.Address)
	resp.tls(&r.TLS)
	resp.auth(&r.Auth, &r.TLS)
	resp.connections(&r.MaxConnections, &r.MaxConnectionsPerAddress)
	resp.duration(resp.declare("idle_timeout", field.Restart, "Longest time of a connection without a complete command; 1s to 365d."),
		&r.IdleTimeout, time.Second, 365*24*time.Hour)
	resp.end()
}

// connections reads the bounds of a listener's connections.
func (s *section) connections(most, perAddress *int) {
	s.count(s.declare("max_connections", field.Restart, "Bound of the connections of clients. A further connection replaces the "+
		"one that is idle longest, or waits if none is idle."), most, 1, mostConnections)
	s.count(s.declare("max_connections_per_address", field.Restart, "Bound of the connections of one IPv4 address or IPv6 "+
		"/64, except trusted_proxies. Further connections are closed."), perAddress, 1, mostConnections)
}

// listener reads the address of a listener, and returns the section of its other fields. The file
// has an address in place of the section if only the address is set.
func (s *section) listener(name string, into *string) *section {
	preset := *into
	s.outline.field(name).written(preset, listenerPattern)
	if s.settable {
		s.outline.field(name).from(variableOf(s.pathOf(name)))
	}
	v, ok := s.fromEnvironment(name)
	if ok {
		s.record(name)
		s.found()
	} else {
		v, ok = s.get(name)
	}
	nested := value{path: s.pathOf(name)}
	switch {
	case !ok:
	case v.node.Kind == yaml.MappingNode:
		nested.node = v.node
	case v.node.Kind != yaml.ScalarNode:
		s.fault(v, "must be an address or fields, not "+kindOf(v.node), "write it like 127.0.0.1:8081, or "+listenerExample)
	}
	word := ok && v.node.Kind == yaml.ScalarNode
	fields := s.section(nested, "write it like "+listenerExample)
	fields.settable, fields.parent = s.settable, s
	fields.outline = s.outline.field(name).or()
	fields.declare("address", field.Restart, "host:port, :port, unix:/path of a socket, or systemd (systemd:NAME) for a socket inherited "+
		"from systemd; off closes the listener.")
	fields.outline.field("address").written(preset, listenerPattern)
	at, given := fields.scalar("address", "an address")
	if given || !word {
		fields.listenerAddress("address", at, given, into)
	} else {
		s.listenerAddress(name, v, true, into)
	}
	s.fixed.Add(fields.pathOf("address"), *into)
	return fields
}

// listenerAddress reads an address, or off.
func (s *section) listenerAddress(name string, v value, ok bool, into *string) {
	if ok && v.text() == "off" {
		*into = ""
	} else if ok || *into != "" {
		s.frontAddress(name, v, ok, into)
	}
}

// ofOneCommand reports whether two listeners can belong to one process: the proxy and the server
// are different commands.
func ofOneCommand(one, other listener) bool {
	proxy := func(l listener) bool { return strings.HasPrefix(l.value.path, "proxy.") }
	server := func(l listener) bool { return strings.HasPrefix(l.value.path, "server.") }
	return !(proxy(one) && server(other) || server(one) && proxy(other))
}
