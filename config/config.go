package config

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/config/field"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/readfile"
	"github.com/headgate/headgate/rule"
)

// Config is a checked configuration: every rule of it compiles, and every value
// lies within its bounds.
type Config struct {
	// Store is where counters live, as it may be shown: "memory", or the address of
	// the shared store with stars for its password.
	Store string
	// Shared describes the store that several instances share; nil is memory.
	Shared *SharedStore
	// Prefetch says whether rules take units ahead of need that do not say so
	// themselves. Policies of rules have what became of it: Hold and Batch. Default off.
	Prefetch Prefetch
	// StoreTimeout is the budget of one decision, all rules together. Default 20ms.
	StoreTimeout time.Duration
	// Fallback is how rules answer when the store cannot; each rule of Rules has its
	// own, from here or from itself. Default deny.
	Fallback guard.Fallback
	// LocalShare is this instance's part of each limit, in percent, for rules that fall
	// back to counting by themselves; 0 when there are none.
	LocalShare int
	// Namespace is a part of every key: see guard.Config.Namespace. Default none.
	Namespace string
	// MaxMemory bounds all state in memory, in bytes. Default 256 MiB.
	MaxMemory int64
	// OnFull decides a new key when every place holds a limited one. Default Deny.
	OnFull headgate.Verdict
	// ShutdownTimeout is how long a stop waits for requests in flight. Default 10s.
	ShutdownTimeout time.Duration
	// Independent lets each rule count on its own; otherwise the rules that match are
	// all or nothing. Default false.
	Independent bool
	// Identity says whom to believe about who sends a request.
	Identity Identity
	// Folds say what of a path the service disregards.
	Folds rule.Folds
	// Rules are in the order of the file. Those of mode off are among them.
	Rules []guard.Rule
	// FairShare says among which clients the capacity of the service is divided; nil is none.
	FairShare *guard.FairShare
	Log       Log
	Proxy     Proxy
	Admin     Admin

	stamps stamps // of what Load read
	// places are faults without a text, one for each field that names a file: see Located.
	places []Fault
	// proxyOnly are the settings of a file that Load read and that a Go program does not use.
	proxyOnly []string
	// fixed are the values that a reload cannot change.
	fixed field.Fixed
	// environment tells that variables of the process were looked at.
	environment bool
	// prefetch is what became of the prefetch of each of Rules.
	prefetch []rulePrefetch
}

// Identity says whom to believe about who sends a request. Its files are relative
// to the folder of the configuration when they were written so.
type Identity struct {
	// TrustedProxies are the peers that may set X-Forwarded-For and the user-IP
	// headers; TrustUnix is among them as the word unix: peers on unix sockets.
	TrustedProxies []netip.Prefix
	TrustUnix      bool
	// UserIPHeaders carry the user's address; canonical, the first that is there counts.
	UserIPHeaders []string
	// RegionDB is a MaxMind database of countries, for key region; "" is none.
	RegionDB string
	// JWT says which bearer tokens are good, for keys jwt:CLAIM.
	JWT JWT
}

// JWT says which bearer tokens are good.
type JWT struct {
	// Keys is a file of public keys: a JWKS, or PEM. "" is none: no token is good.
	Keys string
	// Issuer and Audience, unless "", must be those of the token.
	Issuer, Audience string
	// Leeway is how far clocks may differ. Default 30s.
	Leeway time.Duration
}

// Proxy is what headgate proxy serves.
type Proxy struct {
	// Listen is host:port, :port, unix:/path of a socket, or systemd (systemd:NAME):
	// the socket that the process was started with. Default ":8080", on every address
	// of the machine.
	Listen string
	// TLS is how clients are served; its zero value is without TLS.
	TLS TLS
	// ProxyProtocol are the balancers that begin each connection with the address of
	// their client (PROXY protocol, version 1 or 2); nobody else may. ProxyProtocolUnix
	// is among them as the word unix: every peer on a unix socket.
	ProxyProtocol     []netip.Prefix
	ProxyProtocolUnix bool
	// Upstream is the service behind: http, https or h2c with host and port, or
	// unix:/path of a socket. It is nil when the configuration has no proxy.
	Upstream *url.URL
	// UpstreamTLS is how an upstream of https is reached.
	UpstreamTLS UpstreamTLS
	// ReadHeaderTimeout bounds how long a caller may take to send a request's head. Default 10s.
	ReadHeaderTimeout time.Duration
	// IdleTimeout is how long a connection is kept without a request. Default 60s.
	IdleTimeout time.Duration
	// BodyIdleTimeout is how long a body may stand still, a client's or an answer's, and how long a
	// write to the upstream may take. Default 60s.
	BodyIdleTimeout time.Duration
	// UpstreamTimeout bounds how long the upstream may take to begin its response. Default 30s.
	UpstreamTimeout time.Duration
	// MaxHeader bounds the fields of a request, in bytes. Default 64 KiB.
	MaxHeader int64
	// MaxConnections bounds the connections of clients. Default 16384.
	MaxConnections int
	// MaxConnectionsPerAddress bounds the connections of one IPv4 address or IPv6 /64.
	// Default 0: no bound.
	MaxConnectionsPerAddress int
	// MaxRequests bounds the requests in flight over all connections. Default 16384.
	MaxRequests int
	// RequestID is the header that carries a request's id to the upstream and back;
	// "" is none. Default X-Request-Id.
	RequestID string
	// HeaderStyle says which fields tell callers of their limits. Default HeaderDraft.
	HeaderStyle HeaderStyle
}

// TLS is how clients are served. Its files are read again when they change.
type TLS struct {
	// Cert and Key are PEM files of the chain and its key; both or none.
	Cert, Key string
	// ClientCA is a PEM file of the authorities of client certificates; "" asks for none.
	ClientCA string
	// ClientAuth says whether clients must have one. Default ClientRequire with a ClientCA.
	ClientAuth ClientAuth
}

// ClientAuth says whether clients must show a certificate.
type ClientAuth string

// Whether clients must show a certificate, as the configuration writes it.
const (
	// ClientRequire refuses clients without one.
	ClientRequire ClientAuth = "require"
	// ClientRequest verifies one that is shown, and serves clients without one.
	ClientRequest ClientAuth = "request"
)

// UpstreamTLS is how an upstream of https is reached. Its files are read again when they change.
type UpstreamTLS struct {
	// CA is a PEM file of authorities that take the place of the system's.
	CA string
	// Cert and Key are PEM files of a client certificate; both or none.
	Cert, Key string
	// ServerName is the name in the upstream's certificate. Default its host.
	ServerName string
}

// HeaderStyle says which header fields tell callers of their limits.
type HeaderStyle string

// The header styles, as the configuration writes them.
const (
	// HeaderDraft is RateLimit and RateLimit-Policy, of the IETF's HTTPAPI draft.
	HeaderDraft HeaderStyle = "draft"
	// HeaderX is X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset.
	HeaderX HeaderStyle = "x-ratelimit"
	// HeaderDraft03 is RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset, of the draft's early versions.
	HeaderDraft03 HeaderStyle = "draft03"
	// HeaderNone is none of them; refusals keep their Retry-After.
	HeaderNone HeaderStyle = "none"
)

// Log is what is logged.
type Log struct {
	// Level is the least level that is logged. Default info.
	Level slog.Level
	// Decisions says which decisions are logged. Default LogSampled.
	Decisions LogDecisions
	// Keys says how keys are named in logs and in ctl top. Default KeysHash.
	Keys LogKeys
	// KeysSecretFile holds the secret of KeysHash; "" makes a random one at each start.
	KeysSecretFile string
	// Access is the form of the access log. Default AccessOff.
	Access AccessFormat
	// AccessFile is where the access log is written; "" is standard output. It is
	// opened again on a reload, so that it can be rotated.
	AccessFile string
}

// AccessFormat is the form of the access log.
type AccessFormat string

// The forms of the access log, as the configuration writes them.
const (
	// AccessOff writes none.
	AccessOff AccessFormat = "off"
	// AccessJSON writes an object a line.
	AccessJSON AccessFormat = "json"
	// AccessCombined writes the combined log format of Apache and nginx.
	AccessCombined AccessFormat = "combined"
)

// LogDecisions says which decisions are logged.
type LogDecisions string

// Which decisions are logged, as the configuration writes it.
const (
	// LogSampled is a bounded number a second, refusals first.
	LogSampled LogDecisions = "sampled"
	// LogAll is every decision.
	LogAll LogDecisions = "all"
	// LogNone is none.
	LogNone LogDecisions = "none"
)

// LogKeys says how keys are named in logs.
type LogKeys string

// How keys are named, as the configuration writes it.
const (
	// KeysHash names each value by a keyed hash.
	KeysHash LogKeys = "hash"
	// KeysPlain names values as they are.
	KeysPlain LogKeys = "plain"
	// KeysOff names no key.
	KeysOff LogKeys = "off"
)

// Admin is where an instance tells of itself.
type Admin struct {
	// Listen is host:port of /metrics, /api/v1 and /debug/pprof; "" is off. Default "127.0.0.1:9902".
	Listen string
	// Health is host:port of /healthz, /readyz and /metrics alone; "" is off. Default "127.0.0.1:9903".
	Health string
	// Hosts are the names, in lower case and without port, by which /metrics may be asked
	// for beside addresses and localhost.
	Hosts []string
}

// defaults gives the Config of a file that sets nothing.
func defaults() *Config {
	return &Config{
		Store:           "memory",
		StoreTimeout:    20 * time.Millisecond,
		Fallback:        guard.FallbackDeny,
		MaxMemory:       256 << 20,
		OnFull:          headgate.Deny,
		ShutdownTimeout: 10 * time.Second,
		Identity:        Identity{JWT: JWT{Leeway: 30 * time.Second}},
		Log:             Log{Level: slog.LevelInfo, Decisions: LogSampled, Keys: KeysHash, Access: AccessOff},
		Proxy: Proxy{
			Listen:            ":8080",
			ReadHeaderTimeout: 10 * time.Second,
			IdleTimeout:       60 * time.Second,
			BodyIdleTimeout:   60 * time.Second,
			UpstreamTimeout:   30 * time.Second,
			MaxHeader:         64 << 10,
			MaxConnections:    16384,
			MaxRequests:       16384,
			RequestID:         "X-Request-Id",
			HeaderStyle:       HeaderDraft,
		},
		Admin: Admin{Listen: "127.0.0.1:9902", Health: "127.0.0.1:9903"},
	}
}

// Load reads the file at path, and the HEADGATE_ variables of the environment,
// which override it. It makes the paths of the files that the configuration names
// absolute, and opens none of them. When the file can be read and is at fault, the
// error is Faults.
func Load(path string) (*Config, error) {
	read := stamps{}
	read.take(path)
	text, err := readBounded(path)
	if err != nil {
		return nil, adviseRead(err)
	}
	return loadText(path, text, read)
}

// LoadText is Load for the text of a configuration that is not in a file. Its paths begin at the working folder.
func LoadText(name string, text []byte) (*Config, error) {
	return loadText(name, text, stamps{})
}

func loadText(path string, text []byte, read stamps) (*Config, error) {
	c, r, err := readConfig(path, text, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	if err := r.locate(path); err != nil {
		return nil, err
	}
	read.take(c.Files()...)
	c.stamps, c.proxyOnly, c.environment = read, r.proxyOnly, true
	return c, nil
}

// adviseRead says what to do about a configuration that cannot be read, where the cause is known.
func adviseRead(err error) error {
	advice := ""
	switch {
	case errors.Is(err, fs.ErrNotExist):
		advice = ": write the file, or name another"
	case errors.Is(err, fs.ErrPermission):
		advice = ": let the user of the process read it"
	case errors.Is(err, readfile.ErrNotRegular):
		advice = ": name the file itself"
	}
	return fmt.Errorf("config: %w%s", err, advice)
}

// readBounded reads one byte more than a file may have, so that the size is
// judged where all else is.
func readBounded(path string) ([]byte, error) {
	return readfile.Head(path, maxFileBytes+1)
}

// Parse checks text, which faults call name. It does not look at the environment,
// nor at the files that the configuration names, whose paths stay as they are
// written. On faults the error is Faults.
func Parse(name string, text []byte) (*Config, error) {
	return parse(name, text, func(string) (string, bool) { return "", false })
}

func parse(name string, text []byte, environment func(string) (string, bool)) (*Config, error) {
	c, _, err := readConfig(name, text, environment)
	return c, err
}

// readConfig gives the reader too, which can note further faults; it is nil for a
// text that is no YAML.
func readConfig(name string, text []byte, environment func(string) (string, bool)) (*Config, *reader, error) {
	src, bad := newSource(name, text)
	if bad != nil {
		return nil, nil, Faults{*bad}
	}
	root, bad := src.tree()
	if bad != nil {
		return nil, nil, Faults{*bad}
	}
	r := &reader{source: src, environment: environment, root: root}
	c := defaults()
	r.config(c)
	if err := r.result(); err != nil {
		return nil, r, err
	}
	c.places, c.fixed = r.places(), r.fixed
	return c, r, nil
}
