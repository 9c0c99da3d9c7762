package config

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/config/field"
)

// What a proxy keeps at most, in bytes. The numbers are measured, and rounded up;
// docs/operating.md says what is in them.
const (
	// processBytes is a process without traffic, with what the collector may be late by.
	processBytes = 64 << 20
	// connectionBytes is a connection: goroutines, buffers, TLS, a small head, or the
	// bodies and the answers to pings that wait on one of HTTP/2.
	connectionBytes = 320 << 10
	// headFactor is what net/http makes of a byte of fields by HTTP/2 while they arrive.
	headFactor = 4
	// requestBytes is a request in flight: fields, their copy for the service, buffers,
	// and the connection to the service. It has room for those that are refused.
	requestBytes = 192 << 10
	// headShareBytes is, for each connection, the part of long fields by HTTP/1 that
	// arrive at once: 1 KiB, of which net/http makes 24.
	headShareBytes = 24 << 10
	// adminBytes is a connection of the admin or the health listener without its answer, with
	// the fields of a request: at most 16 KiB, of which net/http makes 24 times as much.
	adminBytes = 512 << 10
	// adminRuleBytes and adminClientBytes are what a rule and a client of fair share add to
	// an answer, such as /metrics, that waits for its client.
	adminRuleBytes   = 8 << 10
	adminClientBytes = 1 << 10
)

// AdminConnections bounds the connections of the admin listener, and of the health
// listener. A further one takes the place of the one that is idle longest.
const AdminConnections = 32

// boundGarbage is how much garbage there may be at the bound, in percent of what is in
// use: the memory limit of the process holds it to that. Far from the bound the
// collector goes by its own pace.
const boundGarbage = 12

// MemoryBound gives what a proxy of this configuration takes at most, in bytes, however
// its clients behave: the store, connections, requests in flight, and garbage. Answers'
// fields, which the service chooses, count as up to 8 KiB each.
func (c *Config) MemoryBound() int64 {
	connection := c.connectionBound()
	used := c.MaxMemory + int64(c.Proxy.MaxConnections)*connection + int64(c.Proxy.MaxRequests)*requestBytes +
		c.adminListeners()*AdminConnections*c.adminBound()
	return processBytes + used + used/100*boundGarbage
}

func (c *Config) connectionBound() int64 {
	return connectionBytes + headShareBytes + headFactor*c.Proxy.MaxHeader
}

// adminBound gives what a connection of the admin or the health listener takes.
func (c *Config) adminBound() int64 {
	bound := adminBytes + int64(len(c.Rules))*adminRuleBytes
	if c.FairShare != nil {
		bound += int64(c.FairShare.MaxClients) * adminClientBytes
	}
	return bound
}

func (c *Config) adminListeners() (n int64) {
	for _, at := range [...]string{c.Admin.Listen, c.Admin.Health} {
		if at != "" {
			n++
		}
	}
	return n
}

// writeBound tells how much memory the proxy takes at most, and what that is made of.
func (c *Config) writeBound(b *strings.Builder) {
	fmt.Fprintf(b, "memory at most %s: store %s, %d connections of %s, %d requests of %s, %d of admin and health of %s, garbage %d%%\n",
		formatRounded(c.MemoryBound()), field.FormatSize(c.MaxMemory), c.Proxy.MaxConnections, formatRounded(c.connectionBound()),
		c.Proxy.MaxRequests, formatRounded(requestBytes), c.adminListeners()*AdminConnections, formatRounded(c.adminBound()), boundGarbage)
}

// formatRounded writes a size with one digit after the point, rounded up.
func formatRounded(bytes int64) string {
	unit, name := int64(1<<10), "KiB"
	for _, next := range []string{"MiB", "GiB", "TiB"} {
		if bytes < unit<<10 {
			break
		}
		unit, name = unit<<10, next
	}
	tenths := (bytes*10 + unit - 1) / unit
	if tenths%10 == 0 {
		return fmt.Sprintf("%d%s", tenths/10, name)
	}
	return fmt.Sprintf("%d.%d%s", tenths/10, tenths%10, name)
}
