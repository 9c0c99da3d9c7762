package redis

import (
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
)

// Kind says how the servers are arranged.
type Kind uint8

const (
	// Single is one server, or a proxy that presents several servers as one.
	Single Kind = iota
	// Cluster is a Redis Cluster: keys are divided among masters by hash slot.
	Cluster
	// Sentinel is a master with replicas. Sentinels decide about its failover.
	Sentinel
)

// String gives the scheme of store addresses for this Kind.
func (k Kind) String() string { return [...]string{"redis", "redis+cluster", "redis+sentinel"}[k] }

// Config sets where a Store keeps its counters. Client.InitAddress is required.
type Config struct {
	// Kind says what Client.InitAddress lists: a server, nodes of a cluster, or sentinels.
	Kind Kind
	// Client sets addresses, user, TLS and other options of connections. For unset fields, link.go sets
	// values that suit short decisions.
	Client rueidis.ClientOption
	// Slots is the number of hash slots for a cluster's keys; 0 means all 16384. With fewer slots, more
	// decisions share a script call, and keys spread less evenly.
	Slots int
	// Breaker configures the circuit breaker of each node.
	Breaker Breaker
	// Changed is called once when a node stops answering, and once when the node answers again. It is not called for calls that
	// Close cancels. Changed must not block, and may be nil.
	Changed func(Change)
	// Timeout bounds calls if their context has no deadline; 0 means one second.
	Timeout time.Duration
	// Clock replaces the servers' clocks in tests. Its times must be whole microseconds, from 1970 to
	// 2112.
	Clock func() headgate.Instant
}

// Change reports that a node has stopped answering, answers again, or has left the cluster.
type Change struct {
	// Node is the address, as HOST:PORT.
	Node string
	// State is breaker.Open or breaker.Closed.
	State BreakerState
	// Gone reports that an unreachable node has no keys any more, because other nodes took them over.
	Gone bool
	// Err is the last error of an unreachable node.
	Err error
	// Refuses reports that the node answers, and says that it cannot decide: for example, because it is a replica.
	Refuses bool
}
