package config

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/guard/throttler"
	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/rule"
)

// mostProxyTimeout bounds the proxy's timeouts. No request takes longer than a day.
const mostProxyTimeout = 24 * time.Hour

// Bounds of the proxy's resources for clients.
const (
	leastHeader     = 1 << 10
	mostHeader      = 1 << 20
	mostConnections = 1 << 20
	leastTraffic    = 64 << 20 // Above the costliest connection, so that one client can always send one request.
)

// proxy reads the settings of headgate proxy.
func (s *section) proxy(p *Proxy) {
	proxy := s.sub(s.declare("proxy", field.Taken, "Settings of headgate proxy."), `{listen: ":8080", upstream: "http://127.0.0.1:9000"}`)
	proxy.front(proxy.declare("listen", field.Restart, "Address for clients: host:port, :port, unix:/path of a socket, or systemd "+
		"(systemd:NAME) for a socket inherited from systemd."), &p.Listen)
	proxy.tls(&p.TLS)
	p.TLS.demand(0)
	p.ProxyProtocol, p.ProxyProtocolUnix = proxy.peers(proxy.declare("proxy_protocol", field.Restart,
		"Networks and addresses of balancers that begin each connection with the PROXY protocol; unix means peers on a "+
			"unix socket."))
	proxy.upstream(p)
	proxy.upstreamTLS(p)
	proxy.duration(proxy.declare("read_header_timeout", field.Restart, "Longest time to receive a request's head; 1ms to "+
		"1d."), &p.ReadHeaderTimeout, leastTimeout, mostProxyTimeout)
	proxy.duration(proxy.declare("idle_timeout", field.Restart, "Longest time of a connection without a request; 1ms to 1d."),
		&p.IdleTimeout, leastTimeout, mostProxyTimeout)
	proxy.duration(proxy.declare("body_idle_timeout", field.Taken, "Longest time without progress of a body, or of a write to the "+
		"upstream; 1ms to 1d."), &p.BodyIdleTimeout, leastTimeout, mostProxyTimeout)
	proxy.duration(proxy.declare("upstream_timeout", field.Taken, "Longest wait for the upstream to begin its response; 1ms to 1d."),
		&p.UpstreamTimeout, leastTimeout, mostProxyTimeout)
	proxy.size(proxy.declare("max_header", field.Restart, "Bound of the header fields of a request; 1KiB to 1MiB."),
		&p.MaxHeader, leastHeader, mostHeader)
	proxy.count(proxy.declare("max_connections", field.Restart, "Bound of the connections of clients. A further connection replaces the "+
		"one that is idle longest, or waits if none is idle."), &p.MaxConnections, 1, mostConnections)
	proxy.count(proxy.declare("max_connections_per_address", field.Restart, "Bound of the connections of one IPv4 address or IPv6 "+
		"/64, except trusted_proxies. Further connections are closed."), &p.MaxConnectionsPerAddress, 1, mostConnections)
	proxy.count(proxy.declare("max_requests", field.Restart, "Bound of the requests in flight over all connections. Further requests get "+
		"status 503."), &p.MaxRequests, 1, mostConnections)
	proxy.size(proxy.declare("max_traffic_memory", field.Restart, "Bound of the memory of all connections and requests of clients "+
		"together; 64MiB to 1TiB. Near the bound, the connections with the most memory are closed."),
		&p.MaxTrafficMemory, leastTraffic, mostCallMemory)
	proxy.moreTraffic(p)
	proxy.requestID(p)
	oneOf(proxy, proxy.declare("header_style", field.Taken, "Header fields that tell clients about their limits: "+
		"draft, x-ratelimit, x-ratelimit-epoch, draft03 or none. The reset of x-ratelimit is in seconds from now, that of "+
		"x-ratelimit-epoch a Unix time."), &p.HeaderStyle, []choice[HeaderStyle]{
		{word: string(HeaderDraft), value: HeaderDraft},
		{word: string(HeaderX), value: HeaderX},
		{word: string(HeaderXEpoch), value: HeaderXEpoch},
		{word: string(HeaderDraft03), value: HeaderDraft03},
		{word: string(HeaderNone), value: HeaderNone},
	})
	proxy.dataPlane(p)
	// A reload can change the upstream, but cannot add or remove the proxy.
	s.fixed.Add(proxy.pathOf("upstream"), p.Upstream == nil)
	moved := proxy.moved(fairShareName)
	proxy.end()
	if moved && proxy.set == 0 {
		return // The section had only fair_share, in its former place, and fair share needs no upstream.
	}
	if path := proxy.pathOf("upstream"); p.Upstream == nil && proxy.begun() && !s.blamed(path) && !s.blamedAt(proxy.self.path) {
		proxy.missing("upstream", "write the address of the service, like upstream: http://127.0.0.1:9000")
	}
}

// requestID reads the header that carries a request's id.
func (s *section) requestID(p *Proxy) {
	s.declare("request_id", field.Restart, "Header that carries a request's id to the service and back; off adds no header.")
	defer func() { s.keep("request_id", p.RequestID) }()
	s.outline.field("request_id").text(p.RequestID, headerPattern, 1, maxHeaderName)
	v, ok := s.scalar("request_id", "the name of a header, or off")
	switch {
	case !ok:
	case v.text() == "off":
		p.RequestID = ""
	default:
		s.requestHeader(v, p)
	}
}

const ownHeaderFix = "use another header, like X-Request-Id, or off"

func (s *section) requestHeader(v value, p *Proxy) {
	name, ok := s.headerName(v, 0, v.text(), "X-Request-Id")
	switch {
	case !ok:
	case meaningOf(name) != "":
		s.fault(v, name+" "+meaningOf(name), ownHeaderFix)
	case slices.Contains(answerHeaderNames[:], name):
		s.fault(v, name+" has another meaning in responses", ownHeaderFix)
	default:
		p.RequestID = name
	}
}

// answerHeaderNames are response headers that headgate or services set.
var answerHeaderNames = [...]string{
	"Cache-Control", "Date", "Location", "Ratelimit", "Ratelimit-Limit", "Ratelimit-Policy", "Ratelimit-Remaining", "Ratelimit-Reset",
	"Retry-After", "Server", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset",
}

// checkProxyHeaders checks rules and fair share against the headers that the proxy sets.
func (r *reader) checkProxyHeaders(c *Config) {
	id := ""
	if c.Proxy.Upstream != nil {
		id = c.Proxy.RequestID
	}
	r.noteAll(check.RequestID(c.Rules, id))
	if path := "proxy.request_id"; c.Throttle != nil && throttler.OwnHeader(id) && !r.blamed(path) {
		r.noteAll([]check.Finding{{Path: path, Problem: id + " is a header of the throttle", Fix: ownHeaderFix}})
	}
	if c.FairShare == nil {
		return
	}
	r.noteAll(check.FairShare(c.FairShare, check.ShareContext{
		Rules: c.Rules, Identity: r.identityFacts(c), RequestID: id,
		KeepsID: len(c.Identity.TrustedProxies) > 0 || c.Identity.TrustUnix || r.blamed("identity"),
	}, r.blamed))
}

// upstreamSchemeWords are the supported schemes of an upstream.
var upstreamSchemeWords = [...]string{"http", "https", "h2c", "unix"}

// upstream reads the address of the service. The address may have a password, so a fault repeats
// its text only if it has none.
func (s *section) upstream(p *Proxy) {
	s.declare("upstream", field.Taken, "Address of the service: http://, https:// or h2c:// with host and port, or unix:/path of a socket.")
	s.outline.field("upstream").written("", upstreamPattern)
	v, ok := s.scalar("upstream", "a URL")
	if !ok {
		return
	}
	if strings.HasPrefix(v.text(), unixPrefix) {
		s.upstreamSocket(v, p)
		return
	}
	const example = "write it like http://127.0.0.1:9000"
	u, err := url.Parse(v.text())
	if !strings.Contains(v.text(), "://") || err != nil {
		s.fault(v, "is not a URL with scheme, host and port", example)
		return
	}
	a, portFault := upstreamAddress(u)
	switch {
	case !slices.Contains(upstreamSchemeWords[:], u.Scheme):
		fix := "use http, https, h2c (HTTP/2 without TLS) or unix"
		if near := rule.Nearest(u.Scheme, upstreamSchemeWords[:]); near != "" {
			fix = "did you mean " + near + "? " + fix
		}
		s.fault(v, "scheme "+quote(u.Scheme)+" is not supported", fix)
	case u.User != nil:
		s.fault(v, "contains a user or a password", "remove it, and let the client send Authorization")
	case u.Hostname() == "":
		s.fault(v, "has no host", example)
	case portFault != "":
		s.fault(v, portFault, example)
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		s.fault(v, "has more than scheme, host and port", "remove the text after the port: the proxy uses the path of the request")
	case s.reachesItself(p.Listen, a):
		s.fault(v, "is the proxy itself, which listens on "+p.Listen, "use the port of the service, or change listen")
	default:
		p.Upstream = &url.URL{Scheme: u.Scheme, Host: u.Host}
	}
}

// upstreamSocket reads unix:/path.
func (s *section) upstreamSocket(v value, p *Proxy) {
	path, ok := s.socket(v, "/run/service.sock")
	switch {
	case !ok:
	case p.Listen == unixPrefix+path:
		s.fault(v, "is the proxy itself, which listens on "+p.Listen, "use the socket of the service, or change listen")
	default:
		p.Upstream = &url.URL{Scheme: "unix", Path: path}
	}
}

func upstreamAddress(u *url.URL) (a address, problem string) {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "h2c": "80", "https": "443"}[u.Scheme]
	}
	if strings.HasSuffix(u.Host, ":") {
		return a, "has no port after its colon"
	}
	host := u.Hostname()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	a, _, problem = parseAddress(host + ":" + port)
	if problem == "" && a.port == 0 {
		problem = "has the port 0"
	}
	return a, problem
}

// reachesItself reports whether the upstream is certainly the proxy's own address.
func (s *section) reachesItself(listen string, upstream address) bool {
	own, _, problem := parseAddress(listen)
	here := upstream.loopback() || upstream.everywhere() || upstream.host == own.host
	return problem == "" && here && own.overlaps(upstream)
}
