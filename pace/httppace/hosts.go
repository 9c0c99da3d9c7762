package httppace

import (
	"fmt"
	"net/url"
	"strings"
)

// hosts finds what belongs to a host: a *backoff.Listener, or an *adaptive.Service.
type hosts[T any] struct {
	exact    map[string]T
	suffixes map[string]T // by what comes behind the star: ".example.com"
	others   T
	any      bool // there is an entry for others
}

// newHosts gives each name of a field of Config what of makes for it.
func newHosts[T any](field string, names []string, value func(name string) (T, error)) (*hosts[T], error) {
	h := &hosts[T]{exact: make(map[string]T), suffixes: make(map[string]T)}
	written := make(map[string]string, len(names))
	for _, key := range names {
		name := strings.ToLower(key)
		if other, twice := written[name]; twice {
			return nil, fmt.Errorf("httppace: Config.%s has %q and %q, which are one host: write one of them",
				field, min(key, other), max(key, other))
		}
		written[name] = key
		l, err := value(key)
		if err != nil {
			return nil, err
		}
		switch suffix, wild := strings.CutPrefix(name, "*"); {
		case name == "*":
			h.others, h.any = l, true
		case wild && strings.HasPrefix(suffix, ".") && isHost(suffix[1:]):
			h.suffixes[suffix] = l
		case !wild && isHost(name):
			h.exact[name] = l
		default:
			return nil, fmt.Errorf("httppace: Config.%s has %q: write a host as URLs have it, such as %q, %q, %q or %q",
				field, key, "api.example.com", "api.example.com:8443", "*.example.com", "*")
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

// find gives the entry for a request's URL, and whether there is one. It allocates nothing for a host in
// lower case.
func (h *hosts[T]) find(u *url.URL) (l T, ok bool) {
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

// below gives the entry of the longest wildcard that a host is below.
func (h *hosts[T]) below(name string) (l T, ok bool) {
	if len(h.suffixes) == 0 || len(name) > longestHost {
		return l, false
	}
	for i := range len(name) {
		if name[i] != '.' {
			continue
		}
		if l, ok = h.suffixes[name[i:]]; ok {
			return l, true
		}
	}
	return l, false
}

// withoutPort gives a host without its port, and without the dot at its end that makes
// it absolute. The brackets of an IPv6 address stay.
func withoutPort(host string) string {
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host = host[:i]
	}
	return strings.TrimSuffix(host, ".")
}
