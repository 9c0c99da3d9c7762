package httppace

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/headgate/headgate/pace"
	"github.com/headgate/headgate/pace/backoff"
)

// hosts finds the pacer of a host.
type hosts struct {
	exact    map[string]*backoff.Listener
	suffixes map[string]*backoff.Listener // by what comes behind the star: ".example.com"
	others   *backoff.Listener
	any      bool // there is an entry for others
}

func newHosts(config map[string]*pace.Pacer, listeners *backoff.Listeners) (*hosts, error) {
	h := &hosts{exact: make(map[string]*backoff.Listener), suffixes: make(map[string]*backoff.Listener)}
	written := make(map[string]string, len(config))
	for key, pacer := range config {
		name := strings.ToLower(key)
		if other, twice := written[name]; twice {
			return nil, fmt.Errorf("httppace: Config.Hosts has %q and %q, which are one host: write one of them",
				min(key, other), max(key, other))
		}
		written[name] = key
		l := listeners.Of(pacer)
		switch suffix, wild := strings.CutPrefix(name, "*"); {
		case name == "*":
			h.others, h.any = l, true
		case wild && strings.HasPrefix(suffix, ".") && isHost(suffix[1:]):
			h.suffixes[suffix] = l
		case !wild && isHost(name):
			h.exact[name] = l
		default:
			return nil, fmt.Errorf("httppace: Config.Hosts has %q: write a host as URLs have it, such as %q, %q, %q or %q",
				key, "api.example.com", "api.example.com:8443", "*.example.com", "*")
		}
	}
	return h, nil
}

// isHost says whether a name is what URLs have between "//" and "/".
func isHost(name string) bool {
	if strings.ContainsAny(name, "*@/?#\\ ") || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") {
		return false
	}
	u, err := url.Parse("//" + name)
	return err == nil && u.Host == name && u.Hostname() != ""
}

// find gives the listener of a request's URL, which is nil where none is wanted, and
// whether there is an entry for it. It allocates nothing for a host in lower case.
func (h *hosts) find(u *url.URL) (l *backoff.Listener, ok bool) {
	name := strings.ToLower(u.Host)
	if l, ok = h.exact[name]; ok {
		return l, true
	}
	if bare := withoutPort(name); bare != name {
		name = bare
		if l, ok = h.exact[name]; ok {
			return l, true
		}
	}
	if l, ok = h.below(name); ok {
		return l, true
	}
	return h.others, h.any
}

// longestHost is that of names in DNS. A redirect may lead to a host of any length.
const longestHost = 253

// below gives the listener of the longest wildcard that a host is below.
func (h *hosts) below(name string) (l *backoff.Listener, ok bool) {
	if len(h.suffixes) == 0 || len(name) > longestHost {
		return nil, false
	}
	for i := range len(name) {
		if name[i] != '.' {
			continue
		}
		if l, ok = h.suffixes[name[i:]]; ok {
			return l, true
		}
	}
	return nil, false
}

// withoutPort gives a host without its port, and without the dot at its end that makes
// it absolute. The brackets of an IPv6 address stay.
func withoutPort(host string) string {
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host = host[:i]
	}
	return strings.TrimSuffix(host, ".")
}
