package open

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/config"
	testmemcached "github.com/headgate/headgate/internal/testkit/memcached"
	testredis "github.com/headgate/headgate/internal/testkit/redis"
)

const oneRule = "store_timeout: 5s\nrules: [{name: a, key: [all], limits: [1000000/1d]}]\n"

// TestSkipHostnameVerification: with skip_hostname_verification, a certificate with another name is accepted, and one
// of another authority is not. Without it, the name is verified.
func TestSkipHostnameVerification(t *testing.T) {
	secureRedis, certs := testredis.StartTLS(t)
	secureMemcached := testmemcached.StartTLS(t, certs.CertFile, certs.KeyFile, certs.CAFile, certs.Client)
	other := testredis.NewCertificates(t)
	for scheme, address := range map[string]string{"rediss": secureRedis.Addr, "memcacheds": secureMemcached.Addr} {
		for name, row := range map[string]struct {
			ca, settings string
			trusted      bool
		}{
			"skipped":           {certs.CAFile, ", skip_hostname_verification: true", true},
			"another authority": {other.CAFile, ", skip_hostname_verification: true", false},
			"the system's":      {"", "skip_hostname_verification: true", false},
			"not skipped":       {certs.CAFile, "", false},
			"the right name":    {certs.CAFile, ", server_name: localhost", true},
		} {
			if row.ca != "" {
				row.ca = "ca: " + row.ca
			}
			files := ""
			if scheme == "memcacheds" { // This server requires a client certificate.
				files = ", cert: " + certs.CertFile + ", key: " + certs.KeyFile
			}
			c := parsed(t, fmt.Sprintf("version: 1\nstore: %s://other.example\nstore_tls: {%s%s%s}\n%s", scheme, row.ca, row.settings, files, oneRule))
			_, g := opened(t, c, Options{Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, address)
			}})
			if err := decide(t, g, "/").StoreError; (err == nil) != row.trusted {
				t.Errorf("%s, %s: the error is %v", scheme, name, err)
			}
		}
	}
}

// TestMemcachedWithTLS: two servers of Memcached with TLS and client certificates count a limit. A client without a
// certificate counts nothing.
func TestMemcachedWithTLS(t *testing.T) {
	certs := testredis.NewCertificates(t)
	start := func() string {
		return testmemcached.StartTLS(t, certs.CertFile, certs.KeyFile, certs.CAFile, certs.Client).Addr
	}
	text := "version: 1\nstore: memcacheds://" + start() + "," + start() + "\nstore_timeout: 10s\ndeny_cache: 0s\n" +
		"rules: [{name: a, key: [all], limits: [5/300d]}, {name: b, match: {path: /b}, key: [ip], limits: [4/300d]}]\nstore_tls: {ca: " + certs.CAFile
	s, g := opened(t, parsed(t, text+", cert: "+certs.CertFile+", key: "+certs.KeyFile+"}\n"), Options{})
	allowed := 0
	for range 10 {
		d := decide(t, g, "/")
		if d.StoreError != nil {
			t.Fatal(d.StoreError)
		}
		if d.Verdict == headgate.Allow {
			allowed++
		}
	}
	if allowed != 5 || len(s.Memcached().Stats()) != 2 {
		t.Errorf("%d of 10 requests are allowed, want 5", allowed)
	}
	_, without := opened(t, parsed(t, text+"}\n"), Options{})
	if err := decide(t, without, "/").StoreError; err == nil {
		t.Error("a client without a certificate gets a decision")
	}
}

// TestSentinelPassword: sentinels with a user and a password of their own, from the configuration.
func TestSentinelPassword(t *testing.T) {
	sentinel := testredis.StartSentinel(t, 1, 3)
	addresses := ""
	for _, s := range sentinel.Sentinels {
		if answer, err := s.Do("ACL", "SETUSER", "watcher", "on", ">s3cret", "allchannels", "+@all"); err != nil {
			t.Fatalf("%v, %v", answer, err)
		}
		if answer, err := s.Do("ACL", "SETUSER", "default", "off"); err != nil {
			t.Fatalf("%v, %v", answer, err)
		}
		addresses += "," + s.Addr
	}
	base := "version: 1\nstore: redis+sentinel://" + addresses[1:] + "/" + sentinel.Name + "\n" + oneRule
	s, g := opened(t, parsed(t, base+"store_sentinel_user: watcher\nstore_sentinel_password: s3cret\n"), Options{})
	until(t, func() bool { return decide(t, g, "/").StoreError == nil && reached(s) })
	_, without := opened(t, parsed(t, base), Options{})
	if err := decide(t, without, "/").StoreError; err == nil {
		t.Error("a client without the password gets a decision")
	}
}

// TestPerSecondHasTheSentinelsCredentials: both stores get the credentials for sentinels, and the TLS settings.
func TestPerSecondHasTheSentinelsCredentials(t *testing.T) {
	c := parsed(t, "version: 1\nrules: []\nstore: redis://h\nstore_per_second: rediss+sentinel://s/m\nstore_sentinel_user: u\n"+
		"store_sentinel_password: p\nstore_tls: {skip_hostname_verification: true}\n")
	got, err := redisConfig(c.Shared.PerSecond, Options{}, func() string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	client := got.Client
	if client.Sentinel.Username != "u" || client.Sentinel.Password != "p" || client.TLSConfig.VerifyConnection == nil {
		t.Errorf("got %q, %q and %+v", client.Sentinel.Username, client.Sentinel.Password, client.TLSConfig)
	}
	if c.Shared.SentinelPassword != config.Secret("p") || c.Shared.TLS {
		t.Errorf("got %+v", c.Shared)
	}
}
