package client_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/client/internal/leases"
	client "github.com/headgate/headgate/client/lease"
	"github.com/headgate/headgate/internal/lease/state"
)

func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // In a bubble of synctest.
	synctest.Wait()
}

func config() state.Config {
	return state.Config{
		Resources: []state.Resource{{Match: "db/*", Capacity: 100_000, Algorithm: state.MaxMin, Safe: -1}},
		Lease:     15 * time.Second, Refresh: 5 * time.Second,
	}
}

// group makes a group of servers with one master "a", until the end of the test.
func group(t *testing.T) (*leases.Group, *leases.Server) {
	t.Helper()
	g := leases.New(t, config())
	t.Cleanup(g.Close)
	a := g.Start("a")
	return g, a
}

// dial makes a client of the servers of a group, until the end of the test.
func dial(t *testing.T, g *leases.Group, c client.Config) *client.Client {
	t.Helper()
	if c.Servers == nil {
		c.Servers = []string{"a"}
	}
	c.Dial = g.Dial
	k, err := client.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	return k
}

func lease(t *testing.T, k *client.Client, resource string) *client.Lease {
	t.Helper()
	l, err := k.Lease(resource)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestLease is the story of two programs that share a resource.
func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, a := group(t)
		one, two := dial(t, g, client.Config{}), dial(t, g, client.Config{})
		l, m := lease(t, one, "db/orders"), lease(t, two, "db/orders")
		l.Want(500_000)
		pass(time.Second)
		if l.Rate() != 100 || m.Amount() != 0 {
			t.Errorf("the first has %v/s, the second %d, want all and nothing", l.Rate(), m.Amount())
		}
		if s := l.State(); s.Until.Before(time.Now().Add(14*time.Second)) || s.Limited || s.Lost || s.Slots {
			t.Errorf("%+v", s)
		}
		m.Want(500_000)
		pass(time.Second)
		if l.Rate() != 50 || m.Rate() != 50 {
			t.Errorf("%v and %v, want 50 each", l.Rate(), m.Rate())
		}
		pass(time.Minute)
		if s := l.State(); s.Amount != 50_000 || !s.Limited {
			t.Errorf("%+v after a minute, want the same and Limited", s)
		}
		if _, err := one.Lease("db/orders"); err == nil {
			t.Error("a second lease of a resource is no error")
		}
		m.Close()
		pass(200 * time.Millisecond)
		if l.Rate() != 100 || m.Amount() != 0 {
			t.Errorf("%v and %v after the second one was closed, want all and nothing", l.Rate(), m.Rate())
		}
		again := lease(t, two, "db/orders")
		again.Want(50_000)
		pass(time.Second)
		if again.Rate() != 50 || m.Amount() != 0 {
			t.Errorf("%v after it was claimed again, want 50", again.Rate())
		}
		if err := one.Close(); err != nil {
			t.Error(err)
		}
		pass(100 * time.Millisecond)
		if usage, _ := a.Usage("db/orders"); usage.Claims != 1 {
			t.Errorf("%+v after the first client was closed, want one claim", usage)
		}
		if s := l.State(); !s.Closed || s.Amount != 0 {
			t.Errorf("%+v after the client was closed", s)
		}
		if _, err := one.Lease("db/other"); err == nil {
			t.Error("a closed client gives a lease")
		}
	})
}

// TestDemand: what a program wants follows its calls.
func TestDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, a := group(t)
		l := lease(t, dial(t, g, client.Config{}), "db/orders")
		pass(time.Second)
		l.Waiting(4)
		pass(200 * time.Millisecond)
		if l.Rate() != 8 {
			t.Errorf("%v for 4 waiting units, want 8: they are served within 0.5 s", l.Rate())
		}
		l.Waiting(0)
		for range 120 {
			l.Demand(2)
			pass(100 * time.Millisecond)
		}
		if rate := l.Rate(); rate < 17 || rate > 19 {
			t.Errorf("%v for a demand of 20/s, want 18", rate)
		}
		pass(30 * time.Second)
		_, before := a.Usage("db/orders")
		pass(100 * time.Second)
		if _, after := a.Usage("db/orders"); l.Rate() != 0 || after-before > 25 {
			t.Errorf("%v and %d reports in 100 idle seconds, want 0 and one each 5 s", l.Rate(), after-before)
		}
		if n := testing.AllocsPerRun(100, func() { l.Demand(1); l.Spent(1); l.Refused(1) }); n != 0 {
			t.Errorf("Demand allocates %v times", n)
		}
	})
}

// TestChanged has a value for each change, the end of the lease too.
func TestChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, a := group(t)
		var log bytes.Buffer
		k := dial(t, g, client.Config{OnLoss: client.Safe, Log: slog.New(slog.NewTextHandler(&log, nil))})
		l := lease(t, k, "db/orders")
		l.Want(70_000)
		pass(time.Second)
		<-l.Changed()
		if l.Amount() != 70_000 || len(l.Changed()) != 0 {
			t.Errorf("%d, and %d further changes", l.Amount(), len(l.Changed()))
		}
		until := l.State().Until
		a.Kill()
		for _, change := range []string{"when the stream ends", "at the end of the lease"} {
			select {
			case <-l.Changed():
			case <-time.After(time.Minute):
				t.Fatal("no change", change)
			}
		}
		if s := l.State(); time.Until(until).Abs() > 0 || s.Amount != 100_000 || !s.Lost || !s.Until.IsZero() {
			t.Errorf("%+v %v after the end, want the safe amount", s, time.Since(until))
		}
		pass(time.Minute)
		g.Start("a")
		pass(6 * time.Second)
		if s := l.State(); s.Amount != 100_000 || s.Lost || s.Until.IsZero() {
			t.Errorf("%+v while the new server does not know all leases, want the safe amount", s)
		}
		pass(14 * time.Second)
		if s := l.State(); s.Amount != 70_000 || s.Lost {
			t.Errorf("%+v with a new server", s)
		}
		text := log.String()
		if strings.Count(text, "have ended") != 1 || strings.Count(text, "valid again") != 1 || strings.Count(text, "no stream") > 10 {
			t.Errorf("the log is\n%s", text)
		}
	})
}

// TestReturn: after an outage of any length, the client is back after at most one pause of 3 s, the longest one.
func TestReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, a := group(t)
		lease(t, dial(t, g, client.Config{}), "db/orders").Want(70_000)
		for i := range 30 {
			pass(time.Second)
			a.Kill()
			pass(20*time.Second + time.Duration(i)*250*time.Millisecond)
			a = g.Start("a")
			pass(3100 * time.Millisecond)
			if _, reports := a.Usage("db/orders"); reports == 0 {
				t.Errorf("outage %d: no report 3.1 s after its end", i)
			}
		}
	})
}

// TestServers has a group with a master: the client follows, also after a drain and a kill.
func TestServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, a := group(t)
		b := g.Start("b")
		path := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(path, []byte("hg_secret\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		l := lease(t, dial(t, g, client.Config{Servers: []string{"b", "a"}, TokenFile: path}), "db/orders")
		l.Want(70_000)
		pass(time.Second)
		if usage, _ := a.Usage("db/orders"); l.Amount() != 70_000 || usage.Claims != 1 {
			t.Errorf("%d, and the master has %+v", l.Amount(), usage)
		}
		g.SetMaster("b")
		a.Drain()
		pass(5 * time.Second)
		if usage, _ := b.Usage("db/orders"); l.Amount() != 70_000 || usage.Claims != 1 {
			t.Errorf("%d, and the new master has %+v", l.Amount(), usage)
		}
		g.SetMaster("a")
		b.Kill()
		pass(10 * time.Second)
		if s := l.State(); s.Amount != 70_000 || s.Lost {
			t.Errorf("%+v after the master was killed", s)
		}
		for _, token := range append(a.Tokens(), b.Tokens()...) {
			if token != "Bearer hg_secret" {
				t.Errorf("a stream has the token %q", token)
			}
		}
	})
}

// TestForeignMaster: a server that names another address gets no token there.
func TestForeignMaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := group(t)
		foreign := g.Start("foreign")
		g.SetMaster("foreign")
		l := lease(t, dial(t, g, client.Config{Token: "hg_secret"}), "db/orders")
		l.Want(70_000)
		pass(time.Minute)
		if l.Amount() != 0 || len(foreign.Tokens()) != 0 {
			t.Errorf("%d, and the foreign server has the tokens %v", l.Amount(), foreign.Tokens())
		}
	})
}

// TestHostile has servers with wrong answers: the lease stays within the bounds, and the client lives.
func TestHostile(t *testing.T) {
	for name, change := range map[string]func(*leases.Message){
		"huge": func(m *leases.Message) {
			m.Leases[0].Amount, m.Leases[0].Safe, m.Leases[0].LengthUs = 1<<62, 1<<62, 1<<62
		},
		"negative":   func(m *leases.Message) { m.Leases[0].Amount, m.Leases[0].LengthUs, m.Leases[0].RefreshUs = -1, -1, -1 },
		"no version": func(m *leases.Message) { m.Leases[0].Version, m.Leases[0].Resource = nil, "other" },
		"long name":  func(m *leases.Message) { m.Leases[0].Resource = strings.Repeat("a", 100_000) },
		"too many":   func(m *leases.Message) { m.Leases = make([]*leases.Lease, 200_000) },
		"too large":  func(m *leases.Message) { m.Master = strings.Repeat("a", 4<<20) },
		"empty":      func(m *leases.Message) { m.Leases, m.Holder = nil, "" },
	} {
		synctest.Test(t, func(t *testing.T) {
			g, a := group(t)
			a.Answer(change)
			l := lease(t, dial(t, g, client.Config{OnLoss: client.Safe}), "db/orders")
			l.Want(70_000)
			pass(time.Minute)
			if s := l.State(); s.Amount < 0 || s.Amount > state.MaxAmount || time.Until(s.Until) > 24*time.Hour {
				t.Errorf("%s: %+v", name, s)
			}
			if _, reports := a.Usage("db/orders"); reports > 200 {
				t.Errorf("%s: %d reports in a minute", name, reports)
			}
			a.Answer(nil)
			if name != "huge" {
				pass(40 * time.Second)
				if l.Amount() != 70_000 {
					t.Errorf("%s: %+v when the server is well again", name, l.State())
				}
			}
		})
	}
}

// TestRefused has a resource that no server knows.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := group(t)
		log := new(bytes.Buffer)
		l := lease(t, dial(t, g, client.Config{Log: slog.New(slog.NewTextHandler(log, nil))}), "other")
		l.Want(1000)
		pass(time.Second)
		if s := l.State(); s.Amount != 0 || !strings.Contains(s.Fault, "no pattern matches") {
			t.Errorf("%+v, want the fault", s)
		}
		if text := log.String(); strings.Count(text, "a server refuses a claim") != 1 {
			t.Errorf("the log is\n%s", text)
		}
	})
}

// TestOptimisticStart: without any server, an optimistic program is told after 2 s that it has what it wants.
func TestOptimisticStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := group(t)
		l := lease(t, dial(t, g, client.Config{Servers: []string{"nowhere"}, OnLoss: client.Optimistic}), "db/orders")
		l.Want(1000)
		began := time.Now()
		for l.Amount() == 0 && time.Since(began) < time.Minute {
			<-l.Changed()
		}
		if after := time.Since(began); l.Amount() != 1000 || after != 2*time.Second {
			t.Errorf("%d after %v, want what is wanted after 2 s", l.Amount(), after)
		}
		if s := l.State(); !strings.Contains(s.Fault, "no stream to server \"nowhere\"") {
			t.Errorf("%+v, want why no server answers", s)
		}
	})
}

// TestFlapping has a server that is unreachable for a little longer than a lease: the log has the loss, and the return at most 10 s
// later.
func TestFlapping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, a := group(t)
		log := new(bytes.Buffer)
		l := lease(t, dial(t, g, client.Config{Log: slog.New(slog.NewTextHandler(log, nil))}), "db/orders")
		l.Want(70_000)
		pass(time.Second)
		a.Kill()
		for !l.State().Lost {
			pass(100 * time.Millisecond)
		}
		g.Start("a")
		for l.State().Lost {
			pass(100 * time.Millisecond)
		}
		pass(10 * time.Second)
		if text := log.String(); strings.Count(text, "have ended") != 1 || strings.Count(text, "valid again") != 1 {
			t.Errorf("the log is\n%s", text)
		}
		if s := l.State(); s.Fault != "" {
			t.Errorf("%+v when the server answers, want no fault", s)
		}
	})
}

// TestSlowServer: Close ends in a second whatever the server does.
func TestSlowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := group(t)
		k := dial(t, g, client.Config{Servers: []string{"nowhere"}})
		lease(t, k, "db/orders").Want(1)
		pass(time.Minute)
		began := time.Now()
		if err := k.Close(); err != nil || time.Since(began) > time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// TestManyLeases share one stream.
func TestManyLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, a := group(t)
		k := dial(t, g, client.Config{})
		for i := range 100 {
			lease(t, k, fmt.Sprint("db/", i)).Want(1000)
		}
		pass(30 * time.Second)
		_, reports := a.Usage("db/1")
		pass(100 * time.Second)
		if _, after := a.Usage("db/1"); after-reports > 25 {
			t.Errorf("%d reports in 100 s, want one each 5 s", after-reports)
		}
	})
}

// TestConfig has configurations with faults.
func TestConfig(t *testing.T) {
	for _, c := range []client.Config{
		{},
		{Servers: []string{"a"}, Token: "a", TokenFile: "b"},
		{Servers: []string{"a"}, Token: "a b"},
		{Servers: []string{"a"}, OnLoss: 9},
	} {
		if k, err := client.New(c); err == nil || k != nil {
			t.Errorf("%+v is no error", c)
		}
	}
}

// TestSilentServer: an address that takes connections and says nothing is named in the log, with the time.
func TestSilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		k, err := client.New(client.Config{
			Servers: []string{"a"}, Log: slog.New(slog.NewTextHandler(&log, nil)),
			Dial: func(context.Context, string) (net.Conn, error) {
				here, there := net.Pipe()
				go func() { _, _ = io.Copy(io.Discard, there) }()
				return here, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		lease(t, k, "db/a")
		pass(6 * time.Second)
		if err := k.Close(); err != nil || !strings.Contains(log.String(), "did not accept the stream within 5s") {
			t.Errorf("%v, %s", err, log.String())
		}
	})
}
