package config

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/config/field"
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
// several scrapes at the same time. internal/front/rls bounds the names. It is measured, and rounded up.
const metricBytes = 256 << 20

// ServerMemoryBound returns the most memory, in bytes, that headgate server takes with this
// configuration, however its clients behave. It covers the store, connections, calls in flight,
// and garbage. It is 0 if the configuration has no server.
func (c *Config) ServerMemoryBound() int64 {
	s := c.Server
	if s == nil {
		return 0
	}
	used := c.MaxMemory + s.RateLimitService.LocalCache + c.adminListeners()*AdminConnections*c.adminBound() + c.logBound() +
		c.meteringMemory() + c.metricBound() + c.sentBound() + c.sourceBound()
	if s.GRPC.Address != "" {
		used += int64(s.GRPC.MaxConnections)*grpcConnectionBytes + s.GRPC.MaxCallMemory + ReceiptBytes
	}
	if s.HTTP.Address != "" {
		used += int64(s.HTTP.MaxConnections)*s.HTTP.connectionBound() + jsonBytes
	}
	if c.Lease != nil {
		used += LeaseBytes
	}
	for _, l := range []headgate.Limit{s.Limits.Address, s.Limits.Connections} {
		if l.Per > 0 {
			used += limitBytes
		}
	}
	if s.RESP.Address != "" {
		used += int64(s.RESP.MaxConnections) * respConnectionBytes
	}
	return processBytes + used + used/100*boundGarbage
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
	fmt.Fprintf(b, "memory of the server at most %s: store %s", formatRounded(c.ServerMemoryBound()), field.FormatSize(c.MaxMemory))
	if n := s.RateLimitService.LocalCache; n > 0 {
		fmt.Fprintf(b, ", local cache %s", field.FormatSize(n))
	}
	if s.GRPC.Address != "" {
		fmt.Fprintf(b, ", %s of %s, calls in flight %s, receipts %s",
			field.Counted(s.GRPC.MaxConnections, "gRPC connection"), formatRounded(grpcConnectionBytes),
			field.FormatSize(s.GRPC.MaxCallMemory), field.FormatSize(ReceiptBytes))
	}
	if s.HTTP.Address != "" {
		fmt.Fprintf(b, ", %s of %s, requests in JSON %s",
			field.Counted(s.HTTP.MaxConnections, "HTTP connection"), formatRounded(s.HTTP.connectionBound()), field.FormatSize(jsonBytes))
	}
	if s.RESP.Address != "" {
		fmt.Fprintf(b, ", %s of %s", field.Counted(s.RESP.MaxConnections, "Redis connection"), formatRounded(respConnectionBytes))
	}
	if c.Lease != nil {
		fmt.Fprintf(b, ", leases %s", field.FormatSize(LeaseBytes))
	}
	if n := c.metricBound(); n > 0 {
		fmt.Fprintf(b, ", names of metrics %s", field.FormatSize(n))
	}
	fmt.Fprintf(b, ", sent limits %s", field.FormatSize(c.sentBound()))
	fmt.Fprintf(b, ", %d of admin and health of %s%s, garbage %d%%\n",
		c.adminListeners()*AdminConnections, formatRounded(c.adminBound()), c.logText(), boundGarbage)
}
