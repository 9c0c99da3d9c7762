package config

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// StoreKind is the kind of a shared store.
type StoreKind string

// The kinds of shared stores, with the scheme of their addresses.
const (
	// KindRedis is one server, at an address or a unix socket.
	KindRedis StoreKind = "redis"
	// KindRedisCluster is a Redis Cluster. The address names some of its nodes.
	KindRedisCluster StoreKind = "redis+cluster"
	// KindRedisSentinel is a master with replicas, monitored by sentinels.
	KindRedisSentinel StoreKind = "redis+sentinel"
	// KindMemcached is a set of independent servers.
	KindMemcached StoreKind = "memcached"
)

// SharedStore describes a store that several instances share.
type SharedStore struct {
	Kind StoreKind
	// Addresses are host:port, without duplicates. For KindRedisSentinel, they are those of
	// the sentinels, otherwise those of the servers. For KindRedis, it may be the absolute path of
	// a unix socket: see Socket. For KindMemcached, it may be the name of SRV records: see SRV.
	Addresses []string
	// Master is the sentinels' name of the master, or "" for the other kinds.
	Master string
	// Database is the number of the Redis database.
	Database int
	// User is the Redis ACL user, or "" for the default user. The name is not secret.
	User string
	// Password is the password in the address. PasswordFile is a file with the password instead.
	// At most one of them is set. The file may end with a newline.
	Password     Secret
	PasswordFile string
	// SentinelUser is the sentinels' own ACL user, or "" for their default user.
	SentinelUser string
	// SentinelPassword is the sentinels' own password. SentinelPasswordFile is a file with this
	// password instead. At most one of them is set.
	SentinelPassword     Secret
	SentinelPasswordFile string
	// TLS is set if connections to the servers use TLS, with the files in Files.
	TLS   bool
	Files StoreTLS
	// Slots is the number of hash slots over which keys are spread in a cluster. Default 16384.
	Slots int
	// Counters makes Memcached use an atomic counter for each fixed_window that does not count
	// refused attempts. Default false.
	Counters bool
	// Refresh is the interval in which SRV records of Memcached are resolved again; 0 is never.
	// Default 0.
	Refresh time.Duration
	// DialTimeout bounds the opening of a connection to Redis, with its TLS and its greeting. Default 1s.
	DialTimeout time.Duration
	// DenyCache is how long a key over its limit is refused without a query to the store. With 0,
	// every request queries the store. Default 1s.
	DenyCache time.Duration
	// Breaker says when a server counts as unreachable.
	Breaker Breaker
	// PerSecond is the store for all limits with a period of one second, or nil. Both stores are then
	// in Redis. PerSecond has the Slots, the DialTimeout, the DenyCache, the Breaker, the Files and the
	// credentials for sentinels of this store, and no PerSecond.
	PerSecond *SharedStore
}

// StoreTLS has the files for TLS to a store. Each new connection reads the certificate again.
type StoreTLS struct {
	// CA is a PEM file of authorities that replace those of the system.
	CA string
	// Cert and Key are PEM files of a client certificate. Both are set, or neither.
	Cert, Key string
	// ServerName is the name in the servers' certificates. Default the host of each server.
	ServerName string
	// SkipName accepts a certificate of the authorities with any name. ServerName is then "".
	SkipName bool
}

// Breaker says after which failures a server gets no more queries, and when the next probe follows.
type Breaker struct {
	// Failures is the number of consecutive failed calls that open the breaker. Default 5.
	Failures int
	// Probe is the wait before the first probe. The wait doubles with each failure, up to
	// MaxProbe. Default 100ms and 2s.
	Probe, MaxProbe time.Duration
}

// defaultShared returns the defaults of a shared store.
func defaultShared() SharedStore {
	return SharedStore{
		Slots: redisSlots, DialTimeout: time.Second, DenyCache: time.Second,
		Breaker: Breaker{Failures: 5, Probe: 100 * time.Millisecond, MaxProbe: 2 * time.Second},
	}
}

// String returns the address as in a configuration, with stars in place of the password. The
// result can be logged.
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
	if path := s.Socket(); path != "" {
		b.WriteString(socketText(path))
	} else {
		b.WriteString(strings.Join(s.Addresses, ","))
	}
	if s.Master != "" {
		b.WriteString("/" + s.Master)
	}
	if s.Database != 0 {
		b.WriteString("/" + strconv.Itoa(s.Database))
	}
	return b.String()
}

// scheme returns the scheme of the address, such as rediss+cluster for a cluster with TLS.
func (s *SharedStore) scheme() string {
	socket, srv := s.Socket() != "", s.SRV() != ""
	for i := range storeFormTable {
		f := &storeFormTable[i]
		if f.kind == s.Kind && f.tls == s.TLS && (f.names == socketPath) == socket && (f.names == srvRecords) == srv {
			return f.scheme
		}
	}
	return string(s.Kind) // A program made the value: no address has these fields.
}

// SamePlace reports whether both stores keep their counters in the same place. Credentials, TLS
// and timeouts may differ. Nil stands for store memory, or for no store PerSecond.
func (s *SharedStore) SamePlace(other *SharedStore) bool {
	if s == nil || other == nil {
		return s == other
	}
	mine, others := slices.Sorted(slices.Values(s.Addresses)), slices.Sorted(slices.Values(other.Addresses))
	return s.Kind == other.Kind && slices.Equal(mine, others) && s.Master == other.Master &&
		s.Database == other.Database && s.Slots == other.Slots && s.Counters == other.Counters &&
		s.PerSecond.SamePlace(other.PerSecond)
}
