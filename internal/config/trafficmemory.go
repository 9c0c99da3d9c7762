package config

import (
	"fmt"

	"github.com/headgate/headgate/internal/config/field"
)

// Defaults of connections and requests, for which the defaults of max_traffic_memory are enough.
const (
	proxyConnections = 16384
	proxyRequests    = 16384
	proxyTraffic     = 1300 << 20
	grpcConnections  = 4096
	httpConnections  = 1024
	respConnections  = 4096
	callMemory       = 512 << 20
	serverTraffic    = 960 << 20
	// typicalParts is how many times the typical memory of further connections and requests is added to a default: connections are
	// closed above 60 percent.
	typicalParts = 2
)

// moreTraffic raises the default of max_traffic_memory for further connections and requests: the operator has allowed them. The
// bound that a process enforces stays below the memory of the machine, see MemoryWarnings.
func (s *section) moreTraffic(p *Proxy) {
	if _, given := s.given("max_traffic_memory"); !given {
		p.MaxTrafficMemory += typicalParts * (more(p.MaxConnections, proxyConnections, typicalHTTP2) +
			more(p.MaxRequests, proxyRequests, typicalRequest))
	}
}

// more returns the bytes for a number above its default.
func more(number, preset int, bytes int64) int64 { return int64(max(0, number-preset)) * bytes }

// checkServerTraffic raises the default of max_traffic_memory for further connections and calls, or notes that what is written is not
// enough. calls reports whether max_call_memory is written, and leases whether there is a section lease.
func (s *section) checkServerTraffic(server *Server, calls, leases bool) {
	v, given := s.given("max_traffic_memory")
	if !given {
		server.MaxTrafficMemory += typicalParts*(more(server.GRPC.MaxConnections, grpcConnections, typicalGRPC+typicalServerTLS)+
			more(server.HTTP.MaxConnections, httpConnections, typicalHTTP+typicalServerTLS)+
			more(server.RESP.MaxConnections, respConnections, typicalRESP+typicalServerTLS)) +
			max(0, server.GRPC.MaxCallMemory-callMemory)/callParts*callWhole
		return
	}
	const mib = 1 << 20
	least := int64(0)
	problem := "is too little for max_call_memory"
	if calls {
		least = (server.GRPC.MaxCallMemory + callParts - 1) / callParts * callWhole
		least = (least + mib - 1) / mib * mib // A size has no fraction.
	}
	if leases && least < LeaseBytes+leastServerTraffic {
		least, problem = LeaseBytes+leastServerTraffic, "is too little for leases"
	}
	if server.MaxTrafficMemory < least && !s.blamed(s.pathOf("max_traffic_memory")) {
		s.fault(v, "size "+field.FormatSize(server.MaxTrafficMemory)+" "+problem, "use at least "+field.FormatSize(least))
	}
}

// MemoryWarnings returns notes on bounds that are above the memory of this machine, in bytes. 0 means that it is not known.
func (c *Config) MemoryWarnings(machine int64) (notes []string) {
	for _, b := range []struct {
		bound         int64
		field, advice string
	}{
		{c.MemoryBound(), "", "proxy.max_traffic_memory"},
		{c.ServerMemoryBound(), " of the server", "server.max_traffic_memory"},
	} {
		if unserved := c.Proxy.Upstream == nil && b.field == ""; machine > 0 && b.bound > machine && !unserved {
			notes = append(notes, fmt.Sprintf("memory%s of at most %s is more than the %s of this machine: on such a machine, "+
				"connections are closed near its memory; set %s", b.field, formatRounded(b.bound), formatRounded(machine), b.advice))
		}
	}
	return notes
}

// callParts of callWhole parts of max_traffic_memory are for calls in flight.
const callParts, callWhole = 5, 8
