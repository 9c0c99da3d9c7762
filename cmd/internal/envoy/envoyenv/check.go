package envoyenv

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// check finds values that do not fit together.
func (s *Settings) check() []error {
	faults := []error{
		filesFault("GRPC_SERVER_TLS_CERT", "GRPC_SERVER_TLS_KEY", s.GRPC.Files),
		filesFault("CONFIG_GRPC_XDS_CLIENT_TLS_CERT", "CONFIG_GRPC_XDS_CLIENT_TLS_KEY", s.Limits.XDS.Files),
		filesFault("REDIS_TLS_CLIENT_CERT", "REDIS_TLS_CLIENT_KEY", s.Redis.Files),
		filesFault("MEMCACHE_TLS_CLIENT_CERT", "MEMCACHE_TLS_CLIENT_KEY", s.Memcache.Files),
	}
	if s.GRPC.UseTLS && s.GRPC.Files.Cert == "" {
		faults = append(faults, errors.New("GRPC_SERVER_USE_TLS \"true\": set GRPC_SERVER_TLS_CERT and GRPC_SERVER_TLS_KEY to the files"))
	}
	faults = append(faults, s.GRPC.clientNameFault())
	if x := s.Limits.XDS; s.Limits.UseXDS && x.Server == "" {
		faults = append(faults, errors.New("CONFIG_GRPC_XDS_SERVER_URL \"\": use the address of the server, such as localhost:18000"))
	}
	switch {
	case s.Backend == "memcache":
		faults = append(faults, s.Memcache.fault())
	case s.UsePerSecond:
		faults = append(faults, s.Redis.fault("REDIS_"), s.PerSecond.fault("REDIS_PERSECOND_"))
	default:
		faults = append(faults, s.Redis.fault("REDIS_"))
	}
	return nonNil(faults)
}

// clientNameFault checks the name of client certificates. Without TLS, none of the files is used either.
func (g *GRPC) clientNameFault() error {
	if g.ClientName == "" || !g.UseTLS {
		return nil
	}
	_, err := netip.ParseAddr(g.ClientName)
	valid := err == nil || strings.Trim(strings.ToLower(g.ClientName), "abcdefghijklmnopqrstuvwxyz0123456789-_.") == ""
	switch {
	case g.Files.CA == "":
		return fmt.Errorf("GRPC_CLIENT_TLS_SAN %s: set GRPC_CLIENT_TLS_CACERT too, or no client shows a certificate", quote(g.ClientName))
	case !valid:
		return fmt.Errorf("GRPC_CLIENT_TLS_SAN %s: use the DNS name in the clients' certificates, such as gateway.internal",
			quote(g.ClientName))
	}
	return nil
}

func nonNil(all []error) []error {
	var found []error
	for _, err := range all {
		if err != nil {
			found = append(found, err)
		}
	}
	return found
}

func filesFault(cert, key string, f Files) error {
	if (f.Cert == "") != (f.Key == "") {
		return fmt.Errorf("%s %s and %s %s: set both, or neither", cert, quote(f.Cert), key, quote(f.Key))
	}
	return nil
}

// fault checks the address, which depends on the kind of Redis. The fault shows no password in it.
func (r *Redis) fault(prefix string) error {
	name, shown := prefix+"URL", quote(r.URL)
	if strings.Contains(r.URL, "@") {
		shown = "(not shown)"
	}
	switch master, sentinels, _ := strings.Cut(r.URL, ","); {
	case r.URL == "":
		return fmt.Errorf("%s %s: use the address of Redis, such as localhost:6379", name, shown)
	case r.Type != "sentinel":
		return nil
	case sentinels == "" || master == "" || strings.ContainsAny(master, ":/"):
		return fmt.Errorf("%s %s: with %sTYPE=sentinel, use the name of the master and the sentinels, such as mymaster,host:26379",
			name, shown, prefix)
	}
	return nil
}

func (m *Memcache) fault() error {
	switch {
	case len(m.Servers) > 0 && m.SRV != "":
		return fmt.Errorf("MEMCACHE_SRV %s: MEMCACHE_HOST_PORT is set too: set one of them", quote(m.SRV))
	case len(m.Servers) == 0 && m.SRV == "":
		return errors.New("MEMCACHE_HOST_PORT \"\": with BACKEND_TYPE=memcache, set it to the servers' addresses, or set MEMCACHE_SRV")
	}
	return nil
}
