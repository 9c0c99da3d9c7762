package config

import (
	"net/url"
	"slices"
	"strings"
	"time"
)

// mostProxyTimeout bounds the proxy's timeouts: a day is longer than any request.
const mostProxyTimeout = 24 * time.Hour

// Bounds of what the proxy takes from clients.
const (
	leastHeader     = 1 << 10
	mostHeader      = 1 << 20
	mostConnections = 1 << 20
)

// proxy reads what headgate proxy serves.
func (s *section) proxy(p *Proxy) {
	proxy := s.sub("proxy", `{listen: ":8080", upstream: "http://127.0.0.1:9000"}`)
	proxy.front("listen", &p.Listen)
	proxy.tls(&p.TLS)
	proxy.balancers(p)
	proxy.upstream(p)
	proxy.upstreamTLS(p)
	proxy.duration("read_header_timeout", &p.ReadHeaderTimeout, leastTimeout, mostProxyTimeout)
	proxy.duration("idle_timeout", &p.IdleTimeout, leastTimeout, mostProxyTimeout)
	proxy.duration("body_idle_timeout", &p.BodyIdleTimeout, leastTimeout, mostProxyTimeout)
	proxy.duration("upstream_timeout", &p.UpstreamTimeout, leastTimeout, mostProxyTimeout)
	proxy.size("max_header", &p.MaxHeader, leastHeader, mostHeader)
	connections := int64(p.MaxConnections)
	proxy.number("max_connections", &connections, 1, mostConnections)
	p.MaxConnections = int(connections)
	proxy.requestID(p)
	oneOf(proxy, "header_style", &p.HeaderStyle, []choice[HeaderStyle]{
		{word: string(HeaderDraft), value: HeaderDraft},
		{word: string(HeaderX), value: HeaderX},
		{word: string(HeaderDraft03), value: HeaderDraft03},
		{word: string(HeaderNone), value: HeaderNone},
	})
	proxy.later("fair_share", "use rules with the client's header as key")
	proxy.end()
	if path := proxy.pathOf("upstream"); p.Upstream == nil && (proxy.set > 0 || proxy.self.node != nil) && !s.blamed(path) {
		proxy.missing("upstream", "write the service behind, like upstream: http://127.0.0.1:9000")
	}
}

// balancers reads who begins connections with the address of its client.
func (s *section) balancers(p *Proxy) {
	entries, _ := s.scalars("proxy_protocol", "[10.0.0.0/8]", maxTrustedProxies)
	for _, v := range entries {
		if v.text() == trustUnixWord {
			p.ProxyProtocolUnix = true
		} else if network, ok := s.network(v); ok {
			p.ProxyProtocol = append(p.ProxyProtocol, network)
		}
	}
}

// requestID reads which header carries a request's id.
func (s *section) requestID(p *Proxy) {
	v, ok := s.scalar("request_id", "the name of a header, or off")
	switch {
	case !ok:
	case v.text() == "off":
		p.RequestID = ""
	default:
		name, ok := s.headerName(v, 0, v.text(), "X-Request-Id")
		if ok && isMessageHeader(name) {
			s.fault(v, name+" means something else", "write a header of its own, like X-Request-Id, or off")
		} else if ok {
			p.RequestID = name
		}
	}
}

// upstreamSchemeWords are the ways to a service.
var upstreamSchemeWords = [...]string{"http", "https", "h2c", "unix"}

// upstream reads where requests go. An address may hold a password, so that no
// message repeats it before it is known to hold none.
func (s *section) upstream(p *Proxy) {
	v, ok := s.scalar("upstream", "a URL")
	if !ok {
		return
	}
	if path, found := strings.CutPrefix(v.text(), "unix:"); found {
		s.upstreamSocket(v, p, path)
		return
	}
	const example = "write it like http://127.0.0.1:9000"
	u, err := url.Parse(v.text())
	if !strings.Contains(v.text(), "://") || err != nil {
		s.fault(v, "is not a URL of scheme, host and port", example)
		return
	}
	a, portFault := upstreamAddress(u)
	switch {
	case !slices.Contains(upstreamSchemeWords[:], u.Scheme):
		s.fault(v, "scheme "+quote(u.Scheme)+" is not supported", "use http, https, h2c (HTTP/2 without TLS) or unix")
	case u.User != nil:
		s.fault(v, "has a user or a password in it", "leave it out, and let the caller send Authorization")
	case u.Hostname() == "":
		s.fault(v, "has no host", example)
	case portFault != "":
		s.fault(v, portFault, example)
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		s.fault(v, "has more than scheme, host and port", "leave out what follows the port: the request's own path is used")
	case s.reachesItself(p.Listen, a):
		s.fault(v, "is the proxy itself, which listens on "+p.Listen, "use the port of the service behind, or another one in listen")
	default:
		p.Upstream = &url.URL{Scheme: u.Scheme, Host: u.Host}
	}
}

// upstreamSocket reads unix:/path.
func (s *section) upstreamSocket(v value, p *Proxy, path string) {
	path = strings.TrimPrefix(path, "//")
	switch {
	case socketFault(path) != "":
		s.fault(v, socketFault(path), "write it like unix:/run/service.sock")
	case p.Listen == "unix:"+path:
		s.fault(v, "is the proxy itself, which listens on "+p.Listen, "use the socket of the service behind, or another one in listen")
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
		return a, "has no port behind its colon"
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

// reachesItself reports whether requests would surely go round in circles.
func (s *section) reachesItself(listen string, upstream address) bool {
	own, _, problem := parseAddress(listen)
	here := upstream.loopback() || upstream.everywhere() || upstream.host == own.host
	return problem == "" && here && own.overlaps(upstream)
}
