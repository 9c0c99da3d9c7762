package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/source/postgres"
	server "github.com/headgate/headgate/cmd/internal/testkit/postgres"
	"github.com/headgate/headgate/cmd/internal/testkit/sourcetest"
	"github.com/headgate/headgate/internal/config/source"
	"github.com/headgate/headgate/internal/testkit/logs"
	"github.com/headgate/headgate/internal/testkit/network"
)

// back is how soon a source must have what its new server has: 2 s, and what a busy machine adds.
const back = 2*time.Second + 13*time.Second

// within checks the time until a mirror has the objects.
func within(t *testing.T, what string, m *sourcetest.Mirror, has map[source.Key]string) {
	t.Helper()
	began := time.Now()
	m.Has(has)
	d := time.Since(began)
	if t.Logf("%s: in force after %v", what, d); d > back {
		t.Errorf("%s: in force after %v, want at most 2s on an idle machine", what, d)
	}
}

// set writes a customer by SQL.
func set(s *server.Server, schema, name, text string) {
	s.SQL(fmt.Sprintf("SET search_path = %s; INSERT INTO objects (kind, name, body) VALUES ('customer', '%s', '%s') "+
		"ON CONFLICT (kind, name) DO UPDATE SET body = excluded.body", schema, name, text))
}

const fence = "ALTER SYSTEM SET default_transaction_read_only = on; SELECT pg_reload_conf()"

// pair is a primary with a replica, and a place on them. The source reaches them through a link.
func pair(t *testing.T) (primary, replica *server.Server, p *place, link *network.Link) {
	t.Helper()
	primary = server.Start(t)
	p = (&realServer{Server: primary}).place(t)
	set(primary, p.schema, "a", "old")
	return primary, server.StartReplica(t, primary), p, network.New(t, primary.Addr)
}

// follow follows through a link, with the default interval.
func follow(t *testing.T, p *place, addrs ...string) (*sourcetest.Mirror, *postgres.Source) {
	t.Helper()
	s := p.open(t, postgres.Config{Hosts: addrs, Poll: time.Second, Timeout: 5 * time.Second})
	m, _ := sourcetest.Follow(t, s, nil)
	m.Has(map[source.Key]string{customer("a"): "old"})
	return m, s
}

// TestLeavesFencedPrimary: a failover behind one address. The former primary refuses writes, and keeps its connections; the forwarder
// then leads to the promoted replica.
func TestLeavesFencedPrimary(t *testing.T) {
	t.Parallel()
	primary, replica, p, link := pair(t)
	m, _ := follow(t, p, link.Addr)
	primary.SQL(fence)
	replica.Promote()
	set(replica, p.schema, "a", "new")
	m.UntilNow() // It follows the former primary, because no other one can be reached.
	link.Redirect(replica.Addr)
	within(t, "a former primary that refuses writes", m, map[source.Key]string{customer("a"): "new"})
	m.Until("it says nothing of failures", func() bool { return len(m.Failures) == 0 })
}

// TestLeavesFencedPrimaryAmongHosts: of several hosts, one that takes writes is used, also if another one stands first.
func TestLeavesFencedPrimaryAmongHosts(t *testing.T) {
	t.Parallel()
	primary, replica, p, link := pair(t)
	m, _ := follow(t, p, link.Addr, replica.Addr)
	replica.Promote()
	set(replica, p.schema, "a", "new")
	primary.SQL(fence)
	within(t, "the second host takes writes", m, map[source.Key]string{customer("a"): "new"})
}

// TestFollowsReadOnlyPrimary: a primary that refuses writes, and has no successor, is followed. A write says what is wrong.
func TestFollowsReadOnlyPrimary(t *testing.T) {
	t.Parallel()
	primary := server.Start(t)
	p := (&realServer{Server: primary}).place(t)
	set(primary, p.schema, "a", "old")
	primary.SQL(fence)
	logged := new(logs.Text)
	s := p.open(t, postgres.Config{Hosts: []string{primary.Addr}, Poll: time.Second, Timeout: 5 * time.Second, Logger: logged.Logger()})
	m, _ := sourcetest.Follow(t, s, nil)
	m.Has(map[source.Key]string{customer("a"): "old"})
	_, err := s.Write(t.Context(), source.Write{Key: customer("b"), Text: "x", Record: source.Record{Action: "set"}})
	const refusal = "the server refuses writes, such as a former primary"
	if err == nil || errors.Is(err, source.ErrUnknownResult) || !strings.Contains(err.Error(), refusal) {
		t.Errorf("a write: got %v", err)
	}
	primary.SQL(fmt.Sprintf("BEGIN READ WRITE; UPDATE %s.objects SET body = 'new'; COMMIT", p.schema))
	within(t, "a change of the read-only primary", m, map[source.Key]string{customer("a"): "new"})
	m.Until("it does not read everything again", func() bool { return len(m.Changes) == 2 && len(m.Failures) == 0 })
	if text := logged.String(); strings.Count(text, "follows a server that refuses writes") != 1 || strings.Contains(text, "again") {
		t.Errorf("the log does not say once that the server refuses writes:\n%s", text)
	}
	primary.SQL("ALTER SYSTEM RESET default_transaction_read_only; SELECT pg_reload_conf()")
	m.Until("it says that the server takes writes", func() bool { return strings.Contains(logged.String(), "again that takes writes") })
}

// TestLeavesReplica: the address leads to a replica for a while, and then to the primary.
func TestLeavesReplica(t *testing.T) {
	t.Parallel()
	primary, replica, p, link := pair(t)
	m, _ := follow(t, p, link.Addr)
	link.Redirect(replica.Addr)
	link.Reset()
	m.Until("it fails for a while", func() bool { return len(m.Failures) > 6 })
	set(primary, p.schema, "a", "new")
	link.Redirect(primary.Addr)
	within(t, "a replica", m, map[source.Key]string{customer("a"): "new"})
}
