package config

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// StoreKind says how the servers of a shared store belong together.
type StoreKind string

// The kinds of shared stores, as addresses write them.
const (
	// KindRedis is one server.
	KindRedis StoreKind = "redis"
	// KindRedisCluster is a Redis Cluster, of which some nodes are named.
	KindRedisCluster StoreKind = "redis+cluster"
	// KindRedisSentinel is a master and its replicas, which sentinels watch.
	KindRedisSentinel StoreKind = "redis+sentinel"
	// KindMemcached is a number of servers that know nothing of each other.
	KindMemcached StoreKind = "memcached"
)

// SharedStore says where counters live that several instances share.
type SharedStore struct {
	Kind StoreKind
	// Addresses are host:port, none twice: of the servers, and for KindRedisSentinel of
	// the sentinels.
	Addresses []string
	// Master is what the sentinels call the master; "" for the other kinds.
	Master string
	// Database is the number of Redis' database.
	Database int
	// User is Redis' ACL user; "" is its default user. It is no secret.
	User string
	// Password is that of the address, and PasswordFile the file that holds it instead;
	// one of them at most. A file may end with a line's end.
	Password     Secret
	PasswordFile string
	// SentinelPasswordFile holds the sentinels' own password; "" is none.
	SentinelPasswordFile string
	// TLS says whether the servers are spoken to with TLS, and Files with which files.
	TLS   bool
	Files StoreTLS
	// Slots is how many hash slots of a cluster keys are spread over. Default 16384.
	Slots int
	// Counters lets Memcached count each fixed_window that counts no refused attempts in an
	// atomic counter of its own. Default false.
	Counters bool
	// DenyCache is how long a key that is known to be over its limit is refused without
	// asking the store; 0 always asks. Default 1s.
	DenyCache time.Duration
	// Breaker says when a server counts as away.
	Breaker Breaker
}

// StoreTLS says with which files a store is spoken to. The certificate is read
// again for each connection.
type StoreTLS struct {
	// CA is a PEM file of authorities that take the place of the system's.
	CA string
	// Cert and Key are PEM files of a client certificate; both or none.
	Cert, Key string
	// ServerName is the name in the servers' certificates. Default each one's host.
	ServerName string
}

// Breaker says when a server of a shared store is not asked any more, and when again.
type Breaker struct {
	// Failures is how many calls must fail in a row. Default 5.
	Failures int
	// Probe is the wait before it is asked again, and MaxProbe what that grows to, twice
	// as long with each failure. Default 100ms and 2s.
	Probe, MaxProbe time.Duration
}

// defaultShared gives what a shared store has unless it is told otherwise.
func defaultShared() SharedStore {
	return SharedStore{
		Slots: redisSlots, DenyCache: time.Second,
		Breaker: Breaker{Failures: 5, Probe: 100 * time.Millisecond, MaxProbe: 2 * time.Second},
	}
}

// String gives the address as configurations write it, with stars for the password:
// it may be logged and shown.
func (s *SharedStore) String() string {
	var b strings.Builder
	b.WriteString(s.scheme() + "://")
	if s.User != "" || s.Password != "" {
		b.WriteString(url.User(s.User).String())
		if s.Password != "" {
			b.WriteString(":" + secretText)
		}
		b.WriteByte('@')
	}
	b.WriteString(strings.Join(s.Addresses, ","))
	if s.Master != "" {
		b.WriteString("/" + s.Master)
	}
	if s.Database != 0 {
		b.WriteString("/" + strconv.Itoa(s.Database))
	}
	return b.String()
}

// scheme gives rediss+cluster for a cluster with TLS.
func (s *SharedStore) scheme() string {
	if !s.TLS {
		return string(s.Kind)
	}
	first, rest, further := strings.Cut(string(s.Kind), "+")
	if further {
		return first + "s+" + rest
	}
	return first + "s"
}

// SamePlace reports whether both find their counters at the same place: how they are
// reached, and how patient one is with them, may differ. Both may be nil, for memory.
func (s *SharedStore) SamePlace(other *SharedStore) bool {
	if s == nil || other == nil {
		return s == other
	}
	mine, others := slices.Sorted(slices.Values(s.Addresses)), slices.Sorted(slices.Values(other.Addresses))
	return s.Kind == other.Kind && slices.Equal(mine, others) && s.Master == other.Master &&
		s.Database == other.Database && s.Slots == other.Slots && s.Counters == other.Counters
}
