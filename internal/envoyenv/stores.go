package envoyenv

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// stores gives the addresses of the stores.
func (s *Settings) stores() (fields, error) {
	if s.Backend == "memcache" {
		return fields{"store": "memcached://" + strings.Join(s.Memcache.Servers, ",")}, nil
	}
	address, err := s.Redis.address("REDIS_")
	stores := fields{"store": address}
	if !s.UsePerSecond {
		return stores, err
	}
	second, err2 := s.PerSecond.address("REDIS_PERSECOND_")
	if second != address { // One server for both counts everything as well.
		stores["store_per_second"] = second
	}
	return stores, errors.Join(err, err2)
}

// address gives the address of a store in Redis. As in envoyproxy/ratelimit, the kind of socket matters
// only for a single server. TLS is no matter of a unix socket there either.
func (r *Redis) address(prefix string) (string, error) {
	user := credentials(string(r.Auth))
	if r.Type == "single" && r.SocketType == "unix" {
		if !strings.HasPrefix(r.URL, "/") {
			return "", fmt.Errorf("%sURL: with %sSOCKET_TYPE=unix, the default, use the path of a socket, or set %sSOCKET_TYPE=tcp",
				prefix, prefix, prefix)
		}
		return "redis+unix://" + user + strings.ReplaceAll((&url.URL{Path: r.URL}).EscapedPath(), "@", "%40"), nil
	}
	scheme, hosts, master := "redis", r.URL, ""
	if r.encrypted() {
		scheme = "rediss"
	}
	switch r.Type {
	case "cluster":
		scheme += "+cluster"
	case "sentinel":
		scheme += "+sentinel"
		name, sentinels, _ := strings.Cut(r.URL, ",")
		hosts, master = sentinels, "/"+url.PathEscape(name)
	}
	if _, rest, found := strings.Cut(hosts, "://"); found {
		return "", fmt.Errorf(
			"%sURL: leave out %s and a password, and use host:port: %sTLS, %sTYPE and %sAUTH say the rest",
			prefix, quote(hosts[:len(hosts)-len(rest)]), prefix, prefix, prefix)
	}
	return scheme + "://" + user + hosts + master, nil
}

// encrypted reports whether connections use TLS.
func (r *Redis) encrypted() bool {
	unix := r.Type == "single" && r.SocketType == "unix"
	return !unix && (r.UseTLS || r.SocketType == "tls")
}

// credentials writes a password, or user:password, for an address.
func credentials(auth string) string {
	if auth == "" {
		return ""
	}
	user, password, both := strings.Cut(auth, ":")
	if !both {
		user, password = "", auth
	}
	return url.UserPassword(user, password).String() + "@"
}

// storeFiles gives the section store_tls, for both stores.
func (s *Settings) storeFiles() fields {
	files := fields{}
	if s.Backend == "memcache" || !s.Redis.encrypted() && (!s.UsePerSecond || !s.PerSecond.encrypted()) {
		return files
	}
	set(files, "ca", s.Redis.Files.CA)
	set(files, "cert", s.Redis.Files.Cert)
	set(files, "key", s.Redis.Files.Key)
	return files
}
