package config

import (
	"net/url"
	"strings"
	"time"
)

// mostProxyTimeout bounds the proxy's timeouts: a day is longer than any request.
const mostProxyTimeout = 24 * time.Hour

// proxy reads what headgate proxy serves.
func (s *section) proxy(p *Proxy) {
	proxy := s.sub("proxy", `{listen: ":8080", upstream: "http://127.0.0.1:9000"}`)
	proxy.listen("listen", &p.Listen, false)
	proxy.upstream(p)
	proxy.duration("read_header_timeout", &p.ReadHeaderTimeout, leastTimeout, mostProxyTimeout)
	proxy.duration("idle_timeout", &p.IdleTimeout, leastTimeout, mostProxyTimeout)
	proxy.duration("upstream_timeout", &p.UpstreamTimeout, leastTimeout, mostProxyTimeout)
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

// upstream reads where requests go. An address may hold a password, so that no
// message repeats it before it is known to hold none.
func (s *section) upstream(p *Proxy) {
	v, ok := s.scalar("upstream", "a URL")
	if !ok {
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
	case u.Scheme != "http" && u.Scheme != "https":
		s.fault(v, "scheme "+quote(u.Scheme)+" is not supported", "use http or https")
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

func upstreamAddress(u *url.URL) (a address, problem string) {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
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
