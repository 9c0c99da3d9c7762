package config

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/config/field"
)

// grpcConnectionBytes is the most memory of one gRPC connection without calls, in bytes: goroutines,
// buffers and TLS. It is measured, and rounded up. Calls count under max_call_memory.
const grpcConnectionBytes = 256 << 10

// respConnectionBytes is the most memory of one connection of the Redis protocol, in bytes: 64 KiB for
// each direction, and the commands that are decided together.
const respConnectionBytes = 384 << 10

// limitBytes is the memory of a limit of server.limits by address, with that of admin.listen.
const limitBytes = 4<<20 + 256<<10

// jsonBytes is the most memory of the bodies of POST /json that are decided at one time.
const jsonBytes = 64 << 20

// ReceiptBytes is the most memory, in bytes, of what clients of headgate.v1 can give back for a second: 1,000,000
// requests with one limit each, in messages of one request. With more limits, or with metering, fewer requests can be given back.
const ReceiptBytes = 320 << 20

// metricBytes is the memory of the names that clients give to metrics: their counters, what they map to, and the responses of
// several scrapes at the same time. cmd/internal/envoy/rls bounds the names. It is measured, and rounded up.
const metricBytes = 256 << 20

// ServerMemoryBound returns the most memory, in bytes, that headgate server takes with this
// configuration, however its clients behave. It covers the store, connections, calls in flight,
// and garbage. It is 0 if the configuration has no server.
func (c *Config) ServerMemoryBound() int64 {
	s := c.Server
	if s == nil {
		return 0
	}
	used := c.storeBound() + c.localCache() + c.adminListeners()*AdminConnections*c.adminBound() + c.HistoryBound() + c.logBound() +
		c.peersBound() + c.meteringMemory() + c.metricBound() + c.sentBound() + c.sourceBound() + c.ServerTrafficBound()
	if s.HTTP.Address != "" {
		used += jsonBytes
	}
	for _, l := range []headgate.Limit{s.Limits.Address, s.Limits.Connections} {
		if l.Per > 0 {
			used += limitBytes
		}
	}
	return processBytes + used + used/100*boundGarbage
}

// ServerTrafficBound returns the bytes for connections of all listeners, with their calls, receipts and leases: max_traffic_memory, or
// less if all of them take less. Leases do not end with their connections, so the bound has all of them in any case.
func (c *Config) ServerTrafficBound() (bound int64) {
	s := c.Server
	if s.GRPC.Address != "" {
		bound += int64(s.GRPC.MaxConnections)*grpcConnectionBytes + c.CallMemory() + c.ReceiptMemory()
	}
	if s.HTTP.Address != "" {
		bound += int64(s.HTTP.MaxConnections) * s.HTTP.connectionBound()
	}
	if s.RESP.Address != "" {
		bound += int64(s.RESP.MaxConnections) * respConnectionBytes
	}
	if c.Lease == nil {
		return min(bound, s.MaxTrafficMemory)
	}
	return min(bound+LeaseBytes, max(s.MaxTrafficMemory, LeaseBytes+leastServerTraffic))
}

// CallMemory returns the bytes for gRPC calls in flight: max_call_memory, but at most five eighths of max_traffic_memory.
func (c *Config) CallMemory() int64 {
	return min(c.Server.GRPC.MaxCallMemory, c.Server.MaxTrafficMemory/callWhole*callParts)
}

// ReceiptMemory returns the bytes for receipts: ReceiptBytes, but at most a third of max_traffic_memory.
func (c *Config) ReceiptMemory() int64 { return min(ReceiptBytes, c.Server.MaxTrafficMemory/3) }

// ServerTypicalMemory returns what headgate server typically takes, in bytes: the process without traffic, a connection of gRPC, of
// HTTP and of the Redis protocol, the TLS of a connection, and a call in flight.
func ServerTypicalMemory() (process, grpc, http, resp, secured, call int64) {
	return typicalProcess, typicalGRPC, typicalHTTP, typicalRESP, typicalServerTLS, typicalCall
}

// metricBound returns the bytes for metrics that values of requests name.
func (c *Config) metricBound() int64 {
	if c.Server.GRPC.Address == "" && c.Server.HTTP.Address == "" {
		return 0
	}
	return metricBytes
}

// sentBytes is the memory of the limits that clients send: a store has up to 65,535 different ones, of some 550 bytes each.
const sentBytes = 40 << 20

// sentBound returns the bytes for sent limits. A shared store has its own, and those of fallback local.
func (c *Config) sentBound() int64 {
	if c.Shared != nil {
		return 2 * sentBytes
	}
	return sentBytes
}

func (h *ServerHTTP) connectionBound() int64 { return adminBytes + h.MaxBody }

// writeServer writes the listeners of the server, and the most memory that it takes.
func (c *Config) writeServer(b *strings.Builder) {
	s := c.Server
	if s == nil {
		return
	}
	fmt.Fprintf(b, "server grpc %s, http %s, resp %s\n", orOff(s.GRPC.Address), orOff(s.HTTP.Address), orOff(s.RESP.Address))
	fmt.Fprintf(b, "auth grpc %v, http %v, resp %v; callers: %d", s.GRPC.Auth, s.HTTP.Auth, s.RESP.Auth, len(s.Callers))
	if s.CallersFile != "" {
		fmt.Fprintf(b, ", and those of %s", s.CallersFile)
	}
	b.WriteByte('\n')
	fmt.Fprintf(b, "memory of the server at most %s: store %s", formatRounded(c.ServerMemoryBound()), formatRounded(c.storeBound()))
	if n := c.localCache(); n > 0 {
		fmt.Fprintf(b, ", local cache %s", field.FormatSize(n))
	}
	fmt.Fprintf(b, ", %s together %s", listed(c.trafficParts()), formatRounded(c.ServerTrafficBound()))
	if s.HTTP.Address != "" {
		fmt.Fprintf(b, ", requests in JSON %s", field.FormatSize(jsonBytes))
	}
	if n := c.metricBound(); n > 0 {
		fmt.Fprintf(b, ", names of metrics %s", field.FormatSize(n))
	}
	fmt.Fprintf(b, ", sent limits %s", field.FormatSize(c.sentBound()))
	fmt.Fprintf(b, ", %d of admin and health of %s%s, garbage %d%%\n",
		c.adminListeners()*AdminConnections, formatRounded(c.adminBound()), c.logText(), boundGarbage)
	c.writeServerTypical(b)
}

// trafficParts names what shares max_traffic_memory.
func (c *Config) trafficParts() (parts []string) {
	s := c.Server
	for _, l := range []struct {
		address, name string
		most          int
	}{
		{s.GRPC.Address, "gRPC connection", s.GRPC.MaxConnections},
		{s.HTTP.Address, "HTTP connection", s.HTTP.MaxConnections},
		{s.RESP.Address, "Redis connection", s.RESP.MaxConnections},
	} {
		if l.address != "" {
			parts = append(parts, field.Counted(l.most, l.name))
		}
	}
	if s.GRPC.Address != "" {
		parts = append(parts, "calls in flight", "receipts")
	}
	if c.Lease != nil {
		parts = append(parts, "leases")
	}
	return parts
}

// listed writes a list with "and" before its last part.
func listed(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	last := len(parts) - 1
	return strings.Join(parts[:last], ", ") + " and " + parts[last]
}

// writeServerTypical writes what the listeners of the server typically take.
func (c *Config) writeServerTypical(b *strings.Builder) {
	s := c.Server
	fmt.Fprintf(b, "memory of the server typically %s", formatRounded(typicalProcess))
	for _, l := range []struct {
		address, name string
		bytes         int64
	}{{s.GRPC.Address, "gRPC", typicalGRPC}, {s.HTTP.Address, "HTTP", typicalHTTP}, {s.RESP.Address, "Redis", typicalRESP}} {
		if l.address != "" {
			fmt.Fprintf(b, ", %s for each %s connection", formatRounded(l.bytes), l.name)
		}
	}
	fmt.Fprintf(b, " (%s more with TLS)", formatRounded(typicalServerTLS))
	if s.GRPC.Address != "" {
		fmt.Fprintf(b, ", %s for each call in flight", formatRounded(typicalCall))
	}
	b.WriteString(", and the bytes of each key\n")
}
