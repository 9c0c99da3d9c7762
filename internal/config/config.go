package config

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/netip"
	"net/url"
	"os"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/throttler"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/cors"
	"github.com/headgate/headgate/internal/readfile"
	"github.com/headgate/headgate/rule"
)

// Config is a checked configuration: all its rules compile, and all its values are within bounds.
type Config struct {
	// Store says where counters are stored: "memory", or the address of the shared store.
	// The address has stars in place of its password, so that it can be shown.
	Store string
	// Shared describes the store that several instances share. It is nil for store memory.
	Shared *SharedStore
	// Prefetch says whether rules without a prefetch of their own take units ahead of need.
	// The result for each rule is in the Hold and Batch of its policies. Default off.
	Prefetch Prefetch
	// StoreTimeout is the budget of one decision, all rules together. Default 20ms.
	StoreTimeout time.Duration
	// Fallback is the answer of rules when the store fails. Each of Rules has its own
	// Fallback, which defaults to this one. Default deny.
	Fallback guard.Fallback
	// LocalShare is this instance's part of each limit, in percent, for rules with fallback
	// local. It is 0 if no rule has that fallback.
	LocalShare int
	// Namespace is a part of every key: see guard.Config.Namespace. Default "".
	Namespace string
	// MaxMemory bounds all state in memory, in bytes. Default 256 MiB.
	MaxMemory int64
	// OnFull is the verdict for a new key when the keys of all entries are over a limit. Default Deny.
	OnFull headgate.Verdict
	// ShutdownTimeout bounds the wait for requests in flight when the process stops. Default 10s.
	ShutdownTimeout time.Duration
	// Independent lets each rule count on its own. Otherwise, no matching rule counts a request
	// that one of them refuses. Default false.
	Independent bool
	// RetryAfterMax bounds the time until a retry that refused clients read. Default 1d.
	RetryAfterMax time.Duration
	// XShouldRetry adds X-Should-Retry: false to refusals that last more than a minute.
	XShouldRetry bool
	// Identity says which proxies, headers and tokens are trusted to identify the client.
	Identity Identity
	// Folds says which differences between paths the service ignores.
	Folds rule.Folds
	// EnvoyCalendarMonths makes a month one of the calendar in files of envoyproxy/ratelimit that
	// state no month of their own.
	EnvoyCalendarMonths bool
	// Exempt are the requests that nothing decides.
	Exempt []rule.Match
	// Rules has the rules in the order of the file, with rules of mode off.
	Rules []guard.Rule
	// Plans, DefaultPlan and Customers are the limits of the quotas that Rules count. The customers have the names under
	// which rules find them.
	Plans       []guard.Plan
	DefaultPlan string
	Customers   []guard.Customer
	// Source is a further place of rules, plans and customers; nil for none. Then Rules, Plans and Customers may name
	// what only the source has, until Objects.Config adds that.
	Source *Source
	// Domains has the limits of a decision server, in the order of the file.
	Domains []guard.Domain
	// FairShare divides the capacity of the service among its clients. It is nil without fair share.
	FairShare *guard.FairShare
	// Throttle bounds the requests in flight at the service. It is nil without a throttle. Its
	// Identity is nil: GuardConfig sets it.
	Throttle *throttler.Config
	// Metering delivers the usage of quotas. It is nil without metering.
	Metering *Metering
	// Mode is the mode of the whole configuration. Rules, FairShare and Throttle have it already, as far as it weakens theirs.
	Mode guard.Mode
	// Instance names the process in logs and towards clients; "" leaves it to the process. DecisionHeader sends it with refusals. Default
	// true.
	Instance       string
	DecisionHeader bool
	Log            Log
	Proxy          Proxy
	// Server has the settings of headgate server. It is nil if the configuration has no server.
	Server *Server
	// Lease has the settings of capacity leases. It is nil if the configuration has none.
	Lease *Lease
	Admin Admin
	// CORS says which pages of other origins may read the proxy's own answers. It is nil for none.
	CORS *cors.Policy

	stamps stamps // The stamps of the files that Load read.
	// places has a Fault without a text for each field that names a file: see Located.
	places []Fault
	// proxyOnly are the settings of the file that only headgate proxy uses.
	proxyOnly []string
	// fixed are the values that a reload cannot change.
	fixed field.Fixed
	// sourced is set by FollowsSource.
	sourced bool
	// environment is set if Load read environment variables.
	environment bool
	// prefetch is the resulting prefetch of each of Rules.
	prefetch []rulePrefetch
	// own are the modes without Mode and without WithModes. domainsMode is that of all domains.
	own         ownModes
	domainsMode guard.Mode
	// unreadNetworks is set if Parse has read a configuration that names a file of networks.
	unreadNetworks bool
	// written is what Parse or Load read, for NewObjects.
	written *written
	// bodies are the files of on_exceed.body_file.
	bodies []*bodyFile
	// quotas are those of Objects; nil without a source. sourceKnown says that the objects of the source are known.
	quotas      *guard.Quotas
	sourceKnown bool
	customerSum customerSum
}

// Identity says which proxies, headers and tokens are trusted to identify the client. Load
// resolves relative file names from the folder of the configuration.
type Identity struct {
	// TrustedProxies are the peers that may set X-Forwarded-For and the user-IP headers.
	// TrustUnix is set if the list has the word unix, for peers on unix sockets.
	TrustedProxies []netip.Prefix
	TrustUnix      bool
	// UserIPHeaders are headers with the user's address, in canonical form. The first header that
	// a request has counts.
	UserIPHeaders []string
	// RegionDB is the file of a MaxMind database of countries, for key region. Default "".
	RegionDB string
	// JWT says which bearer tokens are valid, for keys jwt:CLAIM.
	JWT JWT
}

// JWT says which bearer tokens are valid.
type JWT struct {
	// Keys is a file of public keys, JWKS or PEM. If it is "", no token is valid.
	Keys string
	// Issuer and Audience must match the token, unless they are "".
	Issuer, Audience string
	// Leeway is the tolerated difference between clocks. Default 30s.
	Leeway time.Duration
}

// Proxy has the settings of headgate proxy.
type Proxy struct {
	// Listen is host:port, :port, or unix:/path of a socket. The value systemd (or
	// systemd:NAME) means a socket inherited from systemd. Default ":8080", on all addresses.
	Listen string
	// TLS has the certificates for clients. The zero value means no TLS.
	TLS TLS
	// ProxyProtocol are the only balancers that may begin a connection with the PROXY
	// protocol, version 1 or 2, which tells the client's address. ProxyProtocolUnix is set
	// if the list has the word unix, for all peers on a unix socket.
	ProxyProtocol     []netip.Prefix
	ProxyProtocolUnix bool
	// Upstream is the service behind the proxy: http, https or h2c with host and port, or
	// unix:/path of a socket. It is nil if the configuration has no proxy.
	Upstream *url.URL
	// UpstreamTLS has the certificates for an upstream of https.
	UpstreamTLS UpstreamTLS
	// ReadHeaderTimeout bounds how long a client may take to send a request's head. Default 10s.
	ReadHeaderTimeout time.Duration
	// IdleTimeout closes a connection that has had no request for so long. Default 60s.
	IdleTimeout time.Duration
	// BodyIdleTimeout bounds the time without progress of a request or response body, and
	// of a write to the upstream. Default 60s.
	BodyIdleTimeout time.Duration
	// UpstreamTimeout bounds the wait for the upstream to begin its response. Default 30s.
	UpstreamTimeout time.Duration
	// MaxHeader bounds the header fields of a request, in bytes. Default 64 KiB.
	MaxHeader int64
	// MaxConnections bounds the connections of clients. Default 16384.
	MaxConnections int
	// MaxConnectionsPerAddress bounds the connections of one IPv4 address or IPv6 /64.
	// Default 0: no bound.
	MaxConnectionsPerAddress int
	// MaxRequests bounds the requests in flight over all connections. Default 16384.
	MaxRequests int
	// MaxTrafficMemory bounds the memory of all connections and requests together, in bytes. Default 1300 MiB, and twice what is
	// typical for MaxConnections and MaxRequests above their defaults.
	MaxTrafficMemory int64
	// RequestID is the header that carries a request's id to the upstream and back. If it is
	// "", there is no such header. Default X-Request-Id.
	RequestID string
	// HeaderStyle says which header fields tell clients about their limits. Default HeaderDraft.
	HeaderStyle HeaderStyle
	// DataPlane says which HTTP code serves connections. Default DataPlaneFast.
	DataPlane DataPlane
	// DataPlaneSetting is the field or the variable that sets DataPlane; "" for the default.
	DataPlaneSetting string
}

// TLS has the certificates for clients. The files are read again when they change.
type TLS struct {
	// Cert and Key are PEM files of the certificate chain and its key. Both are set, or neither.
	Cert, Key string
	// ClientCA is a PEM file of authorities for client certificates. If it is "", no
	// certificate is requested.
	ClientCA string
	// ClientAuth says whether clients must have a certificate. With a ClientCA, the default is ClientRequire, and
	// ClientRequest where a token or a certificate is enough.
	ClientAuth ClientAuth
	// ClientName is a DNS name or an IP address that a client's certificate must have. "" means any.
	ClientName string
}

// ClientAuth says whether clients must present a certificate.
type ClientAuth string

// The values of client_auth.
const (
	// ClientRequire rejects clients without a certificate.
	ClientRequire ClientAuth = "require"
	// ClientRequest verifies a certificate if the client presents one, and serves other clients too.
	ClientRequest ClientAuth = "request"
)

// UpstreamTLS has the certificates for an upstream of https. The proxy reads the files again
// when they change.
type UpstreamTLS struct {
	// CA is a PEM file of authorities that replace those of the system.
	CA string
	// Cert and Key are PEM files of a client certificate. Both are set, or neither.
	Cert, Key string
	// ServerName is the name in the upstream's certificate. Default the host of the upstream.
	ServerName string
}

// HeaderStyle says which header fields tell clients about their limits.
type HeaderStyle string

// The values of header_style.
const (
	// HeaderDraft writes RateLimit and RateLimit-Policy, from the IETF HTTPAPI draft.
	HeaderDraft HeaderStyle = "draft"
	// HeaderX writes X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset, in seconds from now.
	HeaderX HeaderStyle = "x-ratelimit"
	// HeaderDraft03 writes RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset, from early drafts.
	HeaderDraft03 HeaderStyle = "draft03"
	// HeaderXEpoch is HeaderX with X-RateLimit-Reset as a Unix time.
	HeaderXEpoch HeaderStyle = "x-ratelimit-epoch"
	// HeaderNone writes no fields about limits. Refusals still have Retry-After.
	HeaderNone HeaderStyle = "none"
)

// Log has the settings of logging.
type Log struct {
	// Level is the lowest level that is logged. Default info.
	Level slog.Level
	// Format is the form of the log's lines. Default LogAuto.
	Format LogFormat
	// Decisions says which decisions are logged. Default LogSampled.
	Decisions LogDecisions
	// Keys says how logs and ctl top show keys. Default KeysByReader.
	Keys LogKeys
	// KeysSecretFile holds the secret of the hashes. If it is "", each start makes a random secret.
	KeysSecretFile string
	// Access is the format of the access log. Default AccessOff.
	Access AccessFormat
	// Identity are parts of keys whose values the lines of a JSON access log have, in the form of Keys. IdentityPlain are others, whose
	// values the lines have in clear.
	Identity, IdentityPlain []rule.Part
	// AccessFile is the file of the access log, or "" for standard output. A reload opens
	// the file again, so that it can be rotated.
	AccessFile string
}

// LogFormat is the form of the log's lines.
type LogFormat string

// The values of log.format.
const (
	// LogAuto writes text to a terminal, and JSON elsewhere.
	LogAuto LogFormat = "auto"
	// LogJSON writes one JSON object on each line.
	LogJSON LogFormat = "json"
	// LogText writes fields like key=value.
	LogText LogFormat = "text"
)

// AccessFormat is the format of the access log.
type AccessFormat string

// The values of log.access.
const (
	// AccessOff writes no access log.
	AccessOff AccessFormat = "off"
	// AccessJSON writes one JSON object on each line.
	AccessJSON AccessFormat = "json"
	// AccessCombined writes the combined log format of Apache and nginx.
	AccessCombined AccessFormat = "combined"
)

// LogDecisions says which decisions are logged.
type LogDecisions string

// The values of log.decisions.
const (
	// LogSampled logs a bounded number of decisions a second, refusals first.
	LogSampled LogDecisions = "sampled"
	// LogAll logs every decision.
	LogAll LogDecisions = "all"
	// LogNone logs no decision.
	LogNone LogDecisions = "none"
)

// LogKeys says how logs show keys.
type LogKeys string

// The values of log.keys.
const (
	// KeysByReader shows hashes in logs, and the values themselves to callers of the admin listener that may administer.
	KeysByReader LogKeys = "by_reader"
	// KeysHash shows a keyed hash of each value, also in ctl top.
	KeysHash LogKeys = "hash"
	// KeysPlain shows the values themselves.
	KeysPlain LogKeys = "plain"
	// KeysOff shows no key.
	KeysOff LogKeys = "off"
)

// Admin has the addresses of the admin and the health listener.
type Admin struct {
	// Listen is host:port of /metrics, /api/v1 and /debug/pprof, or "" for off. Default "127.0.0.1:9902".
	Listen string
	// Health is host:port of /healthz, /readyz and /metrics, or "" for off. Default "127.0.0.1:9903".
	Health string
	// Hosts are the host names by which scrapers may request /metrics, and with Auth everything, in lower case and without
	// port. IP addresses and localhost are always accepted.
	Hosts []string
	// HistorySeries is the number of series in the history of the instance: 0 to 20,000, 0 for no history. Default 2,000.
	HistorySeries int
	// Auth is how clients of Listen prove who they are, as callers of Server: AuthToken or 0.
	Auth Auth
	// Console is the console in a browser, which Listen serves.
	Console Console
	// TLS has the certificate of Listen. The zero value means no TLS.
	TLS TLS
	// Peers are host:port of instances, with https:// before those with TLS, whose figures the instance has too. PeersTokenFile has the
	// token for them, and PeersCA the authorities of their certificates; "" means none, and those of the system.
	Peers                   []string
	PeersTokenFile, PeersCA string
}

// defaults returns the Config of a file that sets no field.
func defaults() *Config {
	return &Config{
		Store:           "memory",
		StoreTimeout:    20 * time.Millisecond,
		Fallback:        guard.FallbackDeny,
		MaxMemory:       256 << 20,
		OnFull:          headgate.Deny,
		ShutdownTimeout: 10 * time.Second,
		RetryAfterMax:   guard.DefaultRetryAfterMax,
		Identity:        Identity{JWT: JWT{Leeway: 30 * time.Second}},
		Log:             Log{Level: slog.LevelInfo, Format: LogAuto, Decisions: LogSampled, Keys: KeysByReader, Access: AccessOff},
		DecisionHeader:  true,
		Proxy: Proxy{
			Listen:            ":8080",
			ReadHeaderTimeout: 10 * time.Second,
			IdleTimeout:       60 * time.Second,
			BodyIdleTimeout:   60 * time.Second,
			UpstreamTimeout:   30 * time.Second,
			MaxHeader:         64 << 10,
			MaxConnections:    proxyConnections,
			MaxRequests:       proxyRequests,
			MaxTrafficMemory:  proxyTraffic,
			RequestID:         "X-Request-Id",
			HeaderStyle:       HeaderDraft,
			DataPlane:         DataPlaneFast,
		},
		Admin: Admin{Listen: "127.0.0.1:9902", Health: "127.0.0.1:9903", HistorySeries: historySeries},
	}
}

// Load reads the file at path, and the HEADGATE_ variables of the environment, which override
// the file. Load makes the paths of other files in the configuration absolute, but opens
// none of these files. The error is of type Faults if the file is readable but invalid.
func Load(path string) (*Config, error) {
	read := stamps{}
	read.take(path)
	text, err := readBounded(path)
	if err != nil {
		return nil, adviseRead(err)
	}
	return loadText(path, text, read)
}

// LoadText is Load for a text that is not in a file. Relative paths in the text start at the
// working directory.
func LoadText(name string, text []byte) (*Config, error) {
	return loadText(name, text, stamps{})
}

func loadText(path string, text []byte, read stamps) (*Config, error) {
	networks := newNetworkFiles(path)
	c, r, err := readConfig(path, text, os.LookupEnv, networks)
	if err != nil {
		return nil, err
	}
	if err := r.locate(path); err != nil {
		return nil, err
	}
	read.take(c.Files()...)
	maps.Copy(read, networks.stamps) // Those of before the files were read.
	c.stamps, c.proxyOnly, c.environment = read, r.proxyOnly, true
	return c, nil
}

// adviseRead adds advice to the error of a configuration that cannot be read, if the cause is known.
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

// readBounded reads at most one byte more than the bound, because newSource reports the fault
// of a file that is too large.
func readBounded(path string) ([]byte, error) {
	return readfile.Head(path, maxFileBytes+1)
}

// Parse checks text. Faults call the text by name. Parse reads neither the environment nor the
// files that the configuration names, and keeps their paths as written. An error is of
// type Faults.
func Parse(name string, text []byte) (*Config, error) {
	return parse(name, text, func(string) (string, bool) { return "", false })
}

func parse(name string, text []byte, environment func(string) (string, bool)) (*Config, error) {
	c, _, err := readConfig(name, text, environment, nil)
	return c, err
}

// readConfig also returns the reader, which can note further faults. The reader is nil if the
// text is not valid YAML.
func readConfig(name string, text []byte, environment func(string) (string, bool), networks *networkFiles) (*Config, *reader, error) {
	src, bad := newSource(name, text)
	if bad != nil {
		return nil, nil, Faults{*bad}
	}
	root, bad := src.tree()
	if bad != nil {
		return nil, nil, Faults{*bad}
	}
	r := &reader{source: src, environment: environment, root: root, networks: networks}
	c := defaults()
	r.config(c)
	if err := r.result(); err != nil {
		return nil, r, err
	}
	c.places, c.fixed, c.bodies = r.places(), r.fixed, r.bodies
	c.written = &written{source: src, environment: environment, networks: networks}
	c.unreadNetworks = r.unreadNetworks
	return c, r, nil
}
