package redis

import (
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/store/breaker"
)

// Kind is the arrangement of the servers.
type Kind uint8

const (
	// Single is one server, or a proxy that presents several as one.
	Single Kind = iota
	// Cluster is a Redis Cluster: keys are divided among masters by hash slot.
	Cluster
	// Sentinel is a master with replicas. Sentinels decide about its failover.
	Sentinel
)

// String gives the word that addresses use.
func (k Kind) String() string { return [...]string{"redis", "redis+cluster", "redis+sentinel"}[k] }

// Config sets where a Store keeps its counters. Client.InitAddress is required.
type Config struct {
	// Kind says what Client.InitAddress lists: a server, nodes of a cluster, or sentinels.
	Kind Kind
	// Client sets how to connect: addresses, user, TLS. Unset fields get values for short
	// decisions: see link.go.
	Client rueidis.ClientOption
	// Slots is the number of hash slots for a cluster's keys; 0 is all 16384. With fewer slots,
	// more decisions share a script call, and keys spread less evenly.
	Slots int
	// Breaker configures the circuit breaker of each node.
	Breaker breaker.Config
	// Changed is called once when a node stops answering, and once when it answers again. Changed
	// must not block. It may be nil.
	Changed func(Change)
	// Timeout bounds calls without a deadline; 0 is one second.
	Timeout time.Duration
	// Clock replaces the servers' clocks, in tests. Times are from 1970 to 2112, in whole
	// microseconds.
	Clock func() headgate.Instant
}

// Change reports that a node has stopped answering, answers again, or has left the cluster.
type Change struct {
	// Node is the address, as HOST:PORT.
	Node string
	// State is breaker.Open or breaker.Closed.
	State breaker.State
	// Gone reports that an unreachable node has no keys any more: other nodes have them.
	Gone bool
	// Err is the last error of an unreachable node.
	Err error
}
