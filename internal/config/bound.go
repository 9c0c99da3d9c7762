package config

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/internal/config/field"
)

// The most memory that a proxy takes, in bytes. The numbers are measured, and rounded up.
// docs/operating.md explains them.
const (
	// processBytes is a process without traffic, and memory that the garbage collector frees late.
	processBytes = 64 << 20
	// connectionBytes is one connection: goroutines, buffers, TLS and a small request head. It also
	// covers the bodies and ping replies that wait on an HTTP/2 connection.
	connectionBytes = 320 << 10
	// headFactor is how many bytes net/http takes for each byte of HTTP/2 header fields
	// during arrival.
	headFactor = 4
	// requestBytes is a request in flight: its fields, their copy for the service, buffers,
	// and the connection to the service. The number also covers refused requests.
	requestBytes = 192 << 10
	// headShareBytes is for long HTTP/1 header fields that arrive at the same time: 1 KiB for
	// each connection, times the 24 bytes that net/http takes for each byte.
	headShareBytes = 24 << 10
	// adminBytes is one connection of the admin or the health listener, without its response.
	// Most is for request fields: at most 16 KiB, times the 24 bytes that net/http takes for each byte.
	adminBytes = 512 << 10
	// adminRuleBytes and adminClientBytes are the bytes that each rule, and each client of fair
	// share, adds to a response such as /metrics until the scraper has read it.
	adminRuleBytes   = 8 << 10
	adminClientBytes = 1 << 10
	// logAllBytes is the queue of the decision log with decisions: all, and the texts of its lines.
	logAllBytes = 32 << 20
)

// What a proxy typically takes, in bytes: a process with a few rules and its garbage, a connection between requests, and a request that
// waits for the service. They are measured with TestTypicalMemory of cmd/test/acceptance, and rounded up.
const (
	typicalProcess = 64 << 20
	typicalPlain   = 16 << 10
	typicalTLS     = 40 << 10
	typicalHTTP2   = 48 << 10
	typicalRequest = 64 << 10
)

// What headgate server typically takes, in bytes: a connection between calls, for each protocol, and a call in flight. They are
// measured with TestTypicalMemoryOfTheServer of cmd/test/acceptance, and rounded up. TLS adds typicalServerTLS to a connection.
const (
	typicalGRPC      = 48 << 10
	typicalHTTP      = 24 << 10
	typicalRESP      = 8 << 10
	typicalServerTLS = 48 << 10
	typicalCall      = 12 << 10
)

// AdminConnections bounds the connections of the admin listener, and of the health listener. At
// the bound, a new connection replaces the connection that has been idle longest.
const AdminConnections = 32

// boundGarbage is the most garbage, in percent of the memory in use, when memory use is at
// the bound. The memory limit of the process enforces it. Far below the bound, the collector
// uses its default pace.
const boundGarbage = 12

// MemoryBound returns the most memory, in bytes, that a proxy with this configuration takes, however
// its clients behave. It covers the store, connections, requests in flight, and garbage. The
// service chooses the header fields of a response: they count as up to 8 KiB each.
func (c *Config) MemoryBound() int64 {
	used := c.storeBound() + c.TrafficBound() +
		c.adminListeners()*AdminConnections*c.adminBound() + c.HistoryBound() + c.logBound() + c.meteringMemory() + c.sourceBound() +
		c.localCache() + c.peersBound()
	return processBytes + used + used/100*boundGarbage
}

// localCache returns the bytes for counters over their limits.
func (c *Config) localCache() int64 {
	if c.Server == nil {
		return 0
	}
	return c.Server.RateLimitService.LocalCache
}

// storeBound returns the bytes of the store: max_memory, and the lists of its blocks.
func (c *Config) storeBound() int64 { return c.MaxMemory + c.BlockLists() }

// BlockLists returns the bytes that the store in memory takes beside max_memory: 5 for each block of 64.
func (c *Config) BlockLists() int64 {
	const block, entry = 64, 5
	store := c.StoreConfig()
	return store.MaxMemory / 100 * int64(max(store.BlockShare, 0)) / block * entry
}

// TrafficBound returns the bytes for connections and requests of clients: max_traffic_memory, or less if all of them take less.
func (c *Config) TrafficBound() int64 {
	all := int64(c.Proxy.MaxConnections)*c.connectionBound() + int64(c.Proxy.MaxRequests)*requestBytes
	return min(all, c.Proxy.MaxTrafficMemory)
}

func (c *Config) connectionBound() int64 {
	return connectionBytes + headShareBytes + headFactor*c.Proxy.MaxHeader
}

// adminBound returns the bytes for one connection of the admin or the health listener.
func (c *Config) adminBound() int64 {
	bound := adminBytes + int64(len(c.Rules))*adminRuleBytes
	if c.FairShare != nil {
		bound += int64(c.FairShare.MaxClients) * adminClientBytes
	}
	return bound
}

// The memory of the history: a series with its values, the series of the whole instance, and what each rule and each client has beside
// its series. A test of cmd/internal/console/history compares them with what the history takes.
const (
	historySeriesBytes = 3792 + 512
	historyExtraSeries = 384
	historyRuleBytes   = 640
	historyClientBytes = 640
)

// HistoryBound returns the bytes for the history of an instance with an admin listener.
func (c *Config) HistoryBound() int64 {
	bound := int64(len(c.Rules)) * historyRuleBytes
	if c.FairShare != nil {
		bound += int64(c.FairShare.MaxClients) * historyClientBytes
	}
	if c.Admin.HistorySeries > 0 {
		bound += (int64(c.Admin.HistorySeries) + historyExtraSeries) * historySeriesBytes
	}
	return bound
}

// peersBytes is the memory for what peers answer: 8 orders and callers with 64 answers of 64 KiB, decoded, and two lists of 16 MiB.
const peersBytes = 96 << 20

// peersBound returns the bytes for the answers of peers.
func (c *Config) peersBound() int64 {
	if len(c.Admin.Peers) == 0 {
		return 0
	}
	return peersBytes
}

// logBound returns the bytes of the decision log's unwritten lines, as far as processBytes lacks them.
func (c *Config) logBound() int64 {
	if c.Log.Decisions == LogAll {
		return logAllBytes
	}
	return 0
}

// logText is the part of the history, the decision log, metering and a source in a line about memory.
func (c *Config) logText() (text string) {
	if bound := c.HistoryBound(); bound > 0 {
		text = ", history " + formatRounded(bound)
	}
	if bound := c.peersBound(); bound > 0 {
		text += ", answers of peers " + field.FormatSize(bound)
	}
	if bound := c.logBound(); bound > 0 {
		text += ", decision log " + field.FormatSize(bound)
	}
	if bound := c.meteringMemory(); bound > 0 {
		text += ", metering " + formatRounded(bound)
	}
	return text + c.sourceText()
}

func (c *Config) adminListeners() (n int64) {
	for _, at := range [...]string{c.Admin.Listen, c.Admin.Health} {
		if at != "" {
			n++
		}
	}
	return n
}

// writeBound writes the most memory that the proxy takes, and its parts.
func (c *Config) writeBound(b *strings.Builder) {
	cache := ""
	if n := c.localCache(); n > 0 {
		cache = ", local cache " + field.FormatSize(n)
	}
	fmt.Fprintf(b, "memory at most %s: store %s%s, %s and %s together %s, %d of admin and health of %s%s, garbage %d%%\n",
		formatRounded(c.MemoryBound()), formatRounded(c.storeBound()), cache,
		field.Counted(c.Proxy.MaxConnections, "connection"), field.Counted(c.Proxy.MaxRequests, "request"), formatRounded(c.TrafficBound()),
		c.adminListeners()*AdminConnections, formatRounded(c.adminBound()),
		c.logText(), boundGarbage)
	fmt.Fprintf(b, "memory typically %s, and %s for each open connection (%s with TLS, %s with HTTP/2), %s for each request in flight, "+
		"and the bytes of each key\n", formatRounded(typicalProcess), formatRounded(typicalPlain), formatRounded(typicalTLS),
		formatRounded(typicalHTTP2), formatRounded(typicalRequest))
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

// TypicalMemory returns what headgate proxy typically takes, in bytes: the process without traffic, a connection without TLS, with TLS
// and with HTTP/2, and a request in flight.
func TypicalMemory() (process, plain, secured, multiplexed, request int64) {
	return typicalProcess, typicalPlain, typicalTLS, typicalHTTP2, typicalRequest
}
