package open

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/guard"
	testredis "github.com/headgate/headgate/internal/testkit/redis"
)

// oneLimit checks that two instances of a configuration share a limit of 50. The instances send
// 80 requests, and Redis must have counted them. limit is the rule without its name and key.
func oneLimit(t *testing.T, settings string) {
	t.Helper()
	text := "version: 1\n" + settings + "store_timeout: 10s\nrules:\n" +
		"- {name: a, match: {path: /a}, key: [all], algorithm: sliding_log, limits: [50/300d], prefetch: {batch: 10, hold: 10s}}\n" +
		"- {name: b, match: {path: /b}, key: [all], limits: [50/300d]}\n"
	path := filepath.Join(t.TempDir(), "headgate.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	one, oneGuard := opened(t, c, Options{})
	_, otherGuard := opened(t, c, Options{})
	until(t, func() bool { return decide(t, oneGuard, "/warm").StoreError == nil && reached(one) })
	for _, path := range []string{"/a", "/b"} {
		allowed := 0
		for i := range 80 {
			a := decide(t, []*guard.Guard{oneGuard, otherGuard}[i/10%2], path)
			if a.StoreError != nil {
				t.Fatalf("%s: %v", path, a.StoreError)
			}
			if a.Verdict == headgate.Allow {
				allowed++
			}
		}
		if allowed != 50 {
			t.Errorf("%s: %d are allowed, want 50", path, allowed)
		}
	}
	decisions := uint64(0)
	for _, node := range one.Redis().Stats().Nodes {
		decisions += node.Decisions
	}
	if decisions == 0 || one.Prefetch().Stats().Spent == 0 {
		t.Errorf("%d decisions, %+v", decisions, one.Prefetch().Stats())
	}
}

// reached reports whether the servers of a store have answered since the start.
func reached(s *Opened) bool { return s.Redis().Stats().Connected }

// written writes a file for a test, and gives its path.
func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRedisOfAUser: a Redis user with a password from the address, or from a file, in its own
// database.
func TestRedisOfAUser(t *testing.T) {
	server := testredis.StartACL(t, "app", "s@cr/t", "~*", "+@all")
	oneLimit(t, "store: redis://app:s%40cr%2Ft@"+server.Addr+"/3\n")
	if got := server.CLI("-n", "3", "DBSIZE"); strings.TrimSpace(got) == "0" || strings.TrimSpace(server.CLI("DBSIZE")) != "0" {
		t.Errorf("database 3 has %s keys", got)
	}
	server.CLI("-n", "3", "FLUSHALL")
	oneLimit(t, "store: redis://app@"+server.Addr+"/3\nstore_password_file: "+written(t, "s@cr/t\n")+"\n")
}

// TestRedisOfAUserWithoutAPassword: Redis takes any password of a user with nopass, as the fault of an address without one says.
func TestRedisOfAUserWithoutAPassword(t *testing.T) {
	server := testredis.Start(t, "--user", "app", "on", "nopass", "~*", "&*", "+@all")
	oneLimit(t, "store: redis://app:none@"+server.Addr+"\n")
}

// TestRedisOnASocket: a Redis on a unix socket, without and with Options.Dial.
func TestRedisOnASocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a @.sock")
	testredis.Start(t, "--unixsocket", path)
	address := "redis+unix://" + strings.NewReplacer(" ", "%20", "@", "%40").Replace(path)
	oneLimit(t, "store: "+address+"\n")
	c, err := config.Parse("f", []byte("version: 1\nstore: "+address+"\nrules: [{name: a, key: [all], limits: [5/1d]}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	var dialled atomic.Value
	s, _ := opened(t, c, Options{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled.Store(network + " " + address)
		return new(net.Dialer).DialContext(ctx, network, address)
	}})
	until(t, func() bool { return reached(s) })
	if got := dialled.Load(); got != "unix "+path {
		t.Errorf("dialled %v, want %s", got, path)
	}
}

// TestDialTimeout: a server that never completes a connection costs redis_dial_timeout for each attempt, and
// other attempts follow.
func TestDialTimeout(t *testing.T) {
	for _, row := range []struct {
		settings string
		within   time.Duration
	}{{"", time.Second}, {"redis_dial_timeout: 50ms\n", 50 * time.Millisecond}} {
		c, err := config.Parse("f", []byte("version: 1\nstore: redis://127.0.0.1:1\n"+row.settings+"rules: []\n"))
		if err != nil {
			t.Fatal(err)
		}
		bounds := make(chan time.Duration, 100)
		opened(t, c, Options{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			end, _ := ctx.Deadline()
			select {
			case bounds <- time.Until(end):
			default:
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		for range 2 {
			if bound := <-bounds; bound > row.within || bound < row.within/2 {
				t.Errorf("%q: an attempt to connect may take %s, want at most %s", row.settings, bound, row.within)
			}
		}
	}
}

// TestPasswordFileIsReadAgain: the password in the file changes. The next connection uses the
// new password.
func TestPasswordFileIsReadAgain(t *testing.T) {
	server := testredis.StartACL(t, "default", "old", "~*", "&*", "+@all")
	secret := written(t, "old\n")
	c := parsed(t, "version: 1\nstore: redis://"+server.Addr+"\nstore_password_file: "+secret+
		"\nbreaker: {failures: 1, probe: 1ms, max_probe: 5ms}\nstore_timeout: 1s\nrules: [{name: a, key: [all], limits: [1000000/s]}]\n")
	s, g := opened(t, c, Options{})
	answers := func() bool { return decide(t, g, "/").StoreError == nil && reached(s) }
	until(t, answers)
	server.CLI("ACL", "SETUSER", "default", "resetpass", ">new")
	replace(t, secret, "new\n")
	server.CLI("CLIENT", "KILL", "USER", "default")
	until(t, answers)
}

// TestRedisWithTLS: connections with a private authority and a client certificate succeed, also
// with a caller's dialer. Connections without them fail.
func TestRedisWithTLS(t *testing.T) {
	server, certs := testredis.StartTLS(t, "--tls-auth-clients", "yes")
	files := fmt.Sprintf("store_tls: {ca: %s, cert: %s, key: %s", certs.CAFile, certs.CertFile, certs.KeyFile)
	oneLimit(t, "store: rediss://"+server.Addr+"\n"+files+"}\n")
	const rule = "store_timeout: 5s\nrules: [{name: a, key: [all], limits: [1000000/s]}]\n"
	c := parsed(t, "version: 1\nstore: rediss://"+server.Addr+"\n"+files+", server_name: localhost}\n"+rule)
	var dialed atomic.Int64
	s, g := opened(t, c, Options{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		dialed.Add(1)
		return new(net.Dialer).DialContext(ctx, network, address)
	}})
	until(t, func() bool { return decide(t, g, "/").StoreError == nil && reached(s) })
	if dialed.Load() == 0 {
		t.Error("the caller's dialer was not asked")
	}
	for _, other := range []string{"", "store_tls: {ca: " + certs.CAFile + "}\n", files + ", server_name: other.example}\n"} {
		c := parsed(t, "version: 1\nstore: rediss://"+server.Addr+"\n"+other+rule)
		_, g := opened(t, c, Options{})
		if err := decide(t, g, "/").StoreError; err == nil {
			t.Errorf("%q: it is trusted", other)
		}
	}
}

// TestRedisCluster: a configuration of a cluster counts in the cluster's slots.
func TestRedisCluster(t *testing.T) {
	cluster := testredis.StartCluster(t, 3, 0)
	oneLimit(t, "store: redis+cluster://"+strings.Join(cluster.Addrs()[:2], ",")+"\nredis_slots: 64\n")
}

// TestRedisSentinel: the sentinels give the address of the master.
func TestRedisSentinel(t *testing.T) {
	sentinel := testredis.StartSentinel(t, 1, 3)
	var addresses []string
	for _, s := range sentinel.Sentinels {
		addresses = append(addresses, s.Addr)
	}
	oneLimit(t, "store: redis+sentinel://"+strings.Join(addresses, ",")+"/"+sentinel.Name+"/1\n")
}

// TestSentinelsHaveCredentialsOfTheirOwn: the sentinels do not get the credentials of the
// master. Connections to them use TLS when those to the master do.
func TestSentinelsHaveCredentialsOfTheirOwn(t *testing.T) {
	secret, own := written(t, "secret\n"), written(t, "own\n")
	for _, row := range []struct{ settings, password, sentinels string }{
		{"store: rediss+sentinel://app:p@h/m\n", "p", ""},
		{"store: rediss+sentinel://app@h/m\nstore_password_file: " + secret + "\n", "secret", ""},
		{"store: rediss+sentinel://h/m\nstore_sentinel_password_file: " + own + "\n", "", "own"},
	} {
		c, err := redisConfig(parsed(t, "version: 1\nrules: []\n"+row.settings).Shared, Options{}, func() string { return "" })
		if err != nil {
			t.Fatal(err)
		}
		client := c.Client
		if client.Password != row.password || client.Sentinel.Password != row.sentinels || client.Sentinel.Username != "" || client.AuthCredentialsFn != nil {
			t.Errorf("%s: got %q for the master and %q for the sentinels", row.settings, client.Password, client.Sentinel.Password)
		}
		if client.TLSConfig == nil || client.Sentinel.TLSConfig == nil || client.Sentinel.MasterSet != "m" {
			t.Errorf("%s: got %+v", row.settings, client.Sentinel)
		}
	}
}

// TestRedisTLSFiles: a fault in a TLS file is reported when the store is opened.
func TestRedisTLSFiles(t *testing.T) {
	certs := testredis.NewCertificates(t)
	nonsense := written(t, "nonsense")
	for files, want := range map[string]string{
		"ca: " + nonsense: "config: store_tls.ca: " + nonsense + " has no certificate in PEM form: name the file of the authority's certificate",
		"ca: /nowhere":    "config: store_tls.ca: open /nowhere: no such file or directory",
		"cert: " + nonsense + ", key: " + nonsense:              "config: store_tls.cert: tls: failed to find any PEM data in certificate input: cert and key must be PEM files that belong together",
		"cert: " + certs.CertFile + ", key: " + certs.CertFile:  "config: store_tls.cert: ",
		"ca: " + certs.CAFile + ", server_name: redis.internal": "",
	} {
		s, err := Store(parsed(t, "version: 1\nrules: []\nstore: rediss://127.0.0.1:1\nstore_tls: {"+files+"}\n"), Options{})
		switch {
		case want == "":
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		case err == nil || !strings.HasPrefix(err.Error(), want):
			t.Errorf("%s: got %v, want %s", files, err, want)
		}
	}
}
