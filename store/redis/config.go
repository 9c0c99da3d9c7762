package redis

import (
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/store/breaker"
)

// Kind says how the servers stand to each other.
type Kind uint8

const (
	// Single is one server, or several of which a proxy shows one.
	Single Kind = iota
	// Cluster is a Redis Cluster: keys are divided among masters by hash slot.
	Cluster
	// Sentinel is a master with replicas whose failover sentinels decide.
	Sentinel
)

// String gives the word that addresses use.
func (k Kind) String() string { return [...]string{"redis", "redis+cluster", "redis+sentinel"}[k] }

// Config says where a Store keeps its counters. Client.InitAddress is required.
type Config struct {
	// Kind says what Client.InitAddress names: a server, nodes of a cluster, or sentinels.
	Kind Kind
	// Client says how the servers are reached: addresses, user, TLS. What it leaves
	// open is set for short decisions: see doc.go.
	Client rueidis.ClientOption
	// Slots is in how many hash slots a cluster's keys lie; 0 is all 16384. Fewer let
	// more decisions travel in one script call, and spread less evenly.
	Slots int
	// Breaker says when a node that fails is left alone.
	Breaker breaker.Config
	// Changed is told, once each, when a node is given up and when it answers again. It must
	// not block. nil is nobody.
	Changed func(Change)
	// Timeout bounds calls whose callers have no deadline; 0 is one second.
	Timeout time.Duration
	// Clock replaces the servers' clocks, in tests. Times are from 1970 to 2112, and
	// count in whole microseconds.
	Clock func() headgate.Instant
}

// Change tells that a node was given up, or is asked again, or is not needed any more.
type Change struct {
	// Node is its address, as HOST:PORT.
	Node string
	// State is breaker.Open or breaker.Closed.
	State breaker.State
	// Gone tells of a node that was given up and has no keys any more: others have them.
	Gone bool
	// Err is what was answered last, for a node that was given up.
	Err error
}
