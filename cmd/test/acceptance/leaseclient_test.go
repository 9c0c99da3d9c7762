package acceptance

import (
	"crypto/tls"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	client "github.com/headgate/headgate/client/lease"
	"github.com/headgate/headgate/internal/testkit/logs"
)

const leaseSecured = `version: 1
server:
  grpc: {address: %q, auth: token, tls: {cert: %q, key: %q}}
  http: off
  callers: [{name: web, tokens: [%q], scopes: [lease]}]
lease:
  length: 3100ms
  refresh: 100ms
  resources:
    - {match: "db/*", capacity: 500/s, safe: 7/s}
    - {match: "jobs/*", capacity: 9, unit: in_flight}
`

// leaseClient makes a client of a server, until the end of the test.
func leaseClient(t *testing.T, at, token string, secured *tls.Config) (*client.Client, *logs.Text) {
	t.Helper()
	log := new(logs.Text)
	k, err := client.New(client.Config{Servers: []string{at}, TLS: secured, Token: token, Log: log.Logger()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	return k, log
}

// leaseOf claims an amount of a resource.
func leaseOf(t *testing.T, k *client.Client, resource string, wants int64) *client.Lease {
	t.Helper()
	l, err := k.Lease(resource)
	if err != nil {
		t.Fatal(err)
	}
	l.Want(wants)
	return l
}

// TestLeaseClient is the story of a program with two leases over TLS, with a token. The server is killed: the leases stay valid
// until their ends, and then the program has the safe amounts. The restarted server gives the leases again. A program with a
// wrong token gets nothing, and its log says why.
func TestLeaseClient(t *testing.T) {
	t.Parallel()
	a, at := newAuthority(t), freeAddress(t)
	own := a.issue(t, "127.0.0.1", 2)
	path := file(t, fmt.Sprintf(leaseSecured, at, own.cert, own.key, tokenDigest("web"))+adminAnywhere)
	server := launchServer(t, path)
	k, log := leaseClient(t, at, "web", &tls.Config{RootCAs: a.pool()})
	wrong, faults := leaseClient(t, at, "other", &tls.Config{RootCAs: a.pool()})
	orders, jobs, none := leaseOf(t, k, "db/orders", 100_000), leaseOf(t, k, "jobs/mail", 3), leaseOf(t, wrong, "db/orders", 1000)
	leased := func() bool {
		o, j := orders.State(), jobs.State()
		return o.Amount == 100_000 && !o.Lost && !o.Slots && !o.Until.IsZero() && j.Amount == 3 && !j.Lost && j.Slots
	}
	eventually(t, "the leases", leased)
	eventually(t, "the refusal of the token", func() bool { return strings.Contains(faults.String(), "token") })
	if s := none.State(); s.Amount != 0 {
		t.Errorf("a program with a wrong token has %+v", s)
	}
	if err := server.command.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-server.ended
	for until := orders.State().Until; time.Now().Before(until); <-time.After(20 * time.Millisecond) {
		if s := orders.State(); s.Amount != 100_000 && time.Now().Before(until) {
			t.Fatalf("%+v before the end of the lease", s)
		}
	}
	lost := func() bool { return orders.State().Lost && jobs.State().Lost }
	eventually(t, "the end of the leases", lost)
	if o, j := orders.State(), jobs.State(); o.Amount != 7000 || j.Amount != 9 || !o.Until.IsZero() {
		t.Errorf("without a server: %+v and %+v, want the safe 7/s, and the capacity of 9 slots divided by one holder", o, j)
	}
	eventually(t, "a line about the loss", func() bool { return strings.Contains(log.String(), "leases have ended without renewal") })
	launchServer(t, path)
	eventually(t, "the leases of the restarted server", leased)
}
