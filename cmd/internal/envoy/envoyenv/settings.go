package envoyenv

import (
	"time"

	"github.com/headgate/headgate/internal/config"
)

// Settings has the values of all variables that have an effect.
type Settings struct {
	HTTP, Debug Address
	GRPC        GRPC
	Log         Log
	Limits      Limits
	Decisions   Decisions
	Stats       Stats
	// Backend is "redis" or "memcache".
	Backend string
	// StoreReplaced is true if HEADGATE_STORE replaces the store.
	StoreReplaced bool
	Redis         Redis
	// PerSecond is the store for limits with the unit SECOND, if UsePerSecond is true.
	UsePerSecond bool
	PerSecond    Redis
	// HealthByRedis makes the service unhealthy when the last connection to Redis is lost.
	HealthByRedis bool
	// CloseOnReadOnly closes a connection whose server answers READONLY. The store does so in any case.
	CloseOnReadOnly bool
	Memcache        Memcache
}

// Address is a host and a port to listen on.
type Address struct {
	Host string
	Port int
}

// Files are the PEM files of a TLS connection. CA has the authorities for the other side.
type Files struct{ Cert, Key, CA string }

// GRPC is the listener of the decision service.
type GRPC struct {
	Address

	Socket              string // path of a unix socket, in place of Address; "" for none
	MaxAge, MaxAgeGrace time.Duration
	UseTLS              bool
	Files               Files  // with CA, clients need a certificate
	ClientName          string // DNS name that a client certificate must have; "" for any
}

// Log is the verbosity and the form of log lines.
type Log struct {
	Level  string // trace, debug, info, warn, error, fatal or panic
	Format string // text or json
}

// Limits is where the limits come from.
type Limits struct {
	UseXDS bool // CONFIG_TYPE=GRPC_XDS_SOTW, otherwise FILE
	Folder Folder
	XDS    XDS
	Merge  bool // several files may have limits of one domain
	// StartWithout starts to serve before the first configuration came, and HealthyWithOne makes the
	// service healthy only after the first good configuration came.
	StartWithout, HealthyWithOne bool
}

// Folder is a folder of limit files.
type Folder struct {
	Root, Subdirectory, App   string
	WatchRoot, IgnoreDotFiles bool
}

// XDS is a management server that sends the limits.
type XDS struct {
	Server       string
	NodeID       string
	NodeMetadata map[string]string
	Headers      map[string]config.Secret
	UseTLS       bool
	Files        Files
	ServerName   string // DNS name that the server's certificate must have; "" for the host of Server
	// BackoffSet is true if one of the variables of Backoff is set. Otherwise Backoff has their defaults.
	BackoffSet      bool
	Backoff         Backoff
	MaxMessageBytes int // 0 if not set
}

// Backoff is the growth of pauses between two attempts to connect.
type Backoff struct {
	Initial, Max time.Duration
	Factor       float64
	Jitter       bool
}

// Decisions changes how requests are decided and answered.
type Decisions struct {
	Shadow, Quota bool
	NearLimit     float64 // part of a limit, from 0 to 1
	KeyPrefix     string
	CacheBytes    int // of the cache of keys over their limits; 0 for none
	StopIncrement bool
	Metadata      bool // in answers
	Headers       bool // in answers, with the names below
	LimitHeader, RemainingHeader,
	ResetHeader string
}

// Stats is where the counters go. Several targets may be set.
type Stats struct {
	Disabled      bool
	FlushInterval time.Duration
	ExtraTags     map[string]string
	UseStatsd     bool
	UseDogStatsd  bool
	Statsd        Address // of both
	Mogrifiers    []Mogrifier
	UsePrometheus bool
	Prometheus    Prometheus

	mogrifierIDs []string
}

// Mogrifier changes the names of counters that match Pattern, and adds tags. $1 in Name and Tags is
// the first group of the pattern.
type Mogrifier struct {
	ID, Pattern, Name string
	Tags              map[string]string
}

// Prometheus is the listener for scrapes.
type Prometheus struct {
	Address, Path    string
	Mapper           string // path of a file that maps names to labels; "" for the built-in one
	TimesAreInMillis bool
}

// Redis is a Redis server, a cluster, or a master with sentinels.
type Redis struct {
	SocketType         string // unix, tcp or tls
	Type               string // single, cluster or sentinel
	URL                string
	Auth, SentinelAuth config.Secret // password, or user:password
	UseTLS             bool
	Files              Files
	SkipName           bool // the certificate's chain is verified, but not its name
	Timeout            time.Duration
}

// Memcache is a list of servers, or the DNS name of one.
type Memcache struct {
	Servers    []string
	SRV        string
	SRVRefresh time.Duration // 0 resolves SRV once
	UseTLS     bool
	Files      Files
	SkipName   bool
}
