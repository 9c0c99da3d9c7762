package envoyenv

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// stores gives the addresses of the stores.
func (s *Settings) stores() (fields, error) {
	if s.Backend == "memcache" {
		return s.Memcache.store(), nil
	}
	address, err := s.Redis.address("REDIS_")
	stores := fields{"store": address, "redis_dial_timeout": s.dialTimeout().String()}
	if s.StoreReplaced { // It may be of another kind.
		delete(stores, "redis_dial_timeout")
	}
	err = errors.Join(err, s.sentinels(stores))
	if !s.UsePerSecond {
		return stores, err
	}
	second, err2 := s.PerSecond.address("REDIS_PERSECOND_")
	if second != address { // One server for both counts everything as well.
		stores["store_per_second"] = second
	}
	return stores, errors.Join(err, err2)
}

// store gives the address of the servers.
func (m *Memcache) store() fields {
	scheme := "memcached"
	if m.UseTLS {
		scheme = "memcacheds"
	}
	if m.SRV == "" {
		return fields{"store": scheme + "://" + strings.Join(m.Servers, ",")}
	}
	refresh := min(m.SRVRefresh, mostRefresh)
	if refresh > 0 {
		refresh = max(refresh, leastRefresh)
	}
	return fields{"store": scheme + "+srv://" + m.SRV, "memcached_srv_refresh": refresh.String()}
}

// dialTimeout gives the setting for both stores in Redis: the longer one.
func (s *Settings) dialTimeout() time.Duration {
	longest := s.Redis.Timeout
	if s.UsePerSecond {
		longest = max(longest, s.PerSecond.Timeout)
	}
	return max(leastDial, min(longest, mostDial))
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

// sentinels adds the credentials of the sentinels. Both stores have the same in our configuration.
func (s *Settings) sentinels(stores fields) error {
	var auth string
	first, second := s.Redis.Type == "sentinel", s.UsePerSecond && s.PerSecond.Type == "sentinel"
	switch {
	case first && second && s.Redis.SentinelAuth != s.PerSecond.SentinelAuth:
		return errors.New("REDIS_SENTINEL_AUTH and REDIS_PERSECOND_SENTINEL_AUTH differ: give the sentinels of both the same password")
	case first:
		auth = s.Redis.SentinelAuth.Reveal()
	case second:
		auth = s.PerSecond.SentinelAuth.Reveal()
	}
	user, password, both := strings.Cut(auth, ":")
	if !both {
		user, password = "", auth
	}
	set(stores, "store_sentinel_user", user)
	set(stores, "store_sentinel_password", password)
	return nil
}

// storeFiles gives the section store_tls, for both stores in Redis.
func (s *Settings) storeFiles() fields {
	settings := fields{}
	files, skip, used := s.Redis.Files, s.Redis.SkipName, s.Redis.encrypted() || s.UsePerSecond && s.PerSecond.encrypted()
	if s.Backend == "memcache" {
		files, skip, used = s.Memcache.Files, s.Memcache.SkipName, s.Memcache.UseTLS
	}
	if !used {
		return settings
	}
	set(settings, "ca", files.CA)
	set(settings, "cert", files.Cert)
	set(settings, "key", files.Key)
	if skip {
		settings["skip_hostname_verification"] = true
	}
	return settings
}
