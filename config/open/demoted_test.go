package open

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/logs"
	"github.com/headgate/headgate/internal/testkit/network"
	testredis "github.com/headgate/headgate/internal/testkit/redis"
)

// swap is one case of a failover behind one address.
type swap struct {
	fallback string
	prefetch bool
	tls      bool
	timeout  time.Duration // store_timeout
}

func (s swap) name() string {
	name := s.fallback
	if s.prefetch {
		name += "-prefetch"
	}
	if s.tls {
		name += "-tls"
	}
	return name
}

// settings gives a configuration with the store at an address.
func (s swap) settings(address, certs string) string {
	text, prefetch := fmt.Sprintf("version: 1\nstore_timeout: %v\nstore: redis", s.timeout), "off"
	if s.tls {
		text += "s"
	}
	text += "://" + address + "\n"
	if s.tls {
		text += "store_tls: {ca: " + certs + "}\n"
	}
	if s.fallback == "local" {
		text += "local_share: 10%\n"
	}
	if s.prefetch {
		prefetch = "{batch: 20, hold: 100ms}"
	}
	return fmt.Sprintf("%srules: [{name: a, key: [all], algorithm: fixed_window, limits: [%d/300d], fallback: %s, prefetch: %s}]\n",
		text, swapLimit, s.fallback, prefetch)
}

// The limit and the load of a failover.
const (
	swapLimit    = 3000
	swapCallers  = 40
	swapInterval = 20 * time.Millisecond // of each caller: 2,000 requests a second in all
	swapWithin   = 2 * time.Second
	swapOutage   = 1500 * time.Millisecond
	swapLag      = 100 * time.Millisecond // of replication
	swapTimeout  = 2 * time.Second        // The default is too short for busy machines.
)

// TestFailoverBehindOneAddress: under load, the roles of two servers are swapped behind a forwarder, whose open
// connections stay with the demoted master. The soak test has all cases.
func TestFailoverBehindOneAddress(t *testing.T) {
	for _, s := range []swap{{"deny", false, false, swapTimeout}, {"allow", true, true, swapTimeout}, {"local", false, true, swapTimeout}} {
		t.Run(s.name(), func(t *testing.T) { failover(t, s).check(t) })
	}
}

// failover swaps the roles under load. Decisions must be right within swapWithin after the forwarder
// leads to the new master, no decision may take longer than store_timeout, and the store may admit
// only its limit and what the old master gave since shortly before the promotion of its
// replica.
func failover(t *testing.T, s swap) *load {
	t.Helper()
	certs := testredis.NewCertificates(t)
	start := func() *testredis.Server { return testredis.Start(t) }
	if s.tls {
		start = func() *testredis.Server { return testredis.StartTLSWith(t, certs, "--tls-replication", "yes") }
	}
	old, next := start(), start()
	next.Follow(old)
	link := network.New(t, old.Addr)
	opened, g := opened(t, parsed(t, s.settings(link.Addr, certs.CAFile)), Options{})
	until(t, func() bool { return decide(t, g, "/").StoreError == nil && reached(opened) })
	load := startLoad(t, g)
	until(t, func() bool { return load.count(func(d *decided) bool { return d.admitted() }) >= swapLimit/6 })
	promoted := time.Now()
	next.Promote()
	old.Follow(next)
	until(t, func() bool { // By then, the waits between the probes of the breaker have grown.
		return load.count(func(d *decided) bool { return d.err != nil && d.end.After(promoted.Add(swapOutage)) }) > 0
	})
	changed := time.Now()
	link.Redirect(next.Addr)
	until(t, func() bool { return time.Since(changed) > swapWithin && load.refused() })
	load.stop()
	load.sum(promoted, changed)
	return load
}

// decided is one decision of the load.
type decided struct {
	begin, end time.Time
	verdict    headgate.Verdict
	err        error
}

// admitted reports whether the store admitted the request, and not a fallback.
func (d *decided) admitted() bool { return d.err == nil && d.verdict == headgate.Allow }

// load sends requests until it is stopped.
type load struct {
	guard   *guard.Guard
	stopped chan struct{}
	callers sync.WaitGroup

	mu  sync.Mutex
	all []decided

	// The figures of sum.
	failed, admitted int
	between          int // admitted from shortly before the promotion to the change
	slowest, right   time.Duration
}

func startLoad(t *testing.T, g *guard.Guard) *load {
	t.Helper()
	l := &load{guard: g, stopped: make(chan struct{})}
	for range swapCallers {
		l.callers.Go(func() { l.run(t) })
	}
	return l
}

func (l *load) run(t *testing.T) {
	t.Helper()
	next := time.NewTicker(swapInterval)
	defer next.Stop()
	for {
		select {
		case <-l.stopped:
			return
		case <-next.C:
		}
		d, a := decided{begin: time.Now()}, guard.Answer{}
		if err := l.guard.Decide(t.Context(), &headgate.Request{Method: "GET", Path: "/"}, &a); err != nil {
			t.Error(err)
			return
		}
		d.end, d.verdict, d.err = time.Now(), a.Verdict, a.StoreError
		l.mu.Lock()
		l.all = append(l.all, d)
		l.mu.Unlock()
	}
}

func (l *load) stop() {
	close(l.stopped)
	l.callers.Wait()
}

func (l *load) count(which func(*decided) bool) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.all {
		if which(&l.all[i]) {
			n++
		}
	}
	return n
}

// refused reports whether the store refused the last request.
func (l *load) refused() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := &l.all[len(l.all)-1]
	return last.err == nil && last.verdict == headgate.Deny
}

// sum counts what has happened.
func (l *load) sum(promoted, changed time.Time) {
	for i := range l.all {
		d := &l.all[i]
		l.slowest = max(l.slowest, d.end.Sub(d.begin))
		switch {
		case d.err != nil:
			l.failed++
			l.right = max(l.right, d.end.Sub(changed))
		case d.admitted():
			l.admitted++
			if d.end.After(promoted.Add(-swapLag)) && d.begin.Before(changed) {
				l.between++
			}
		}
	}
}

func (l *load) check(t *testing.T) {
	t.Helper()
	t.Logf("%d decisions, %d without the store, %d admitted by it (%d of them from shortly before the promotion to the change), the slowest took %s, right %s after the change",
		len(l.all), l.failed, l.admitted, l.between, l.slowest, l.right)
	if l.right > swapWithin {
		t.Errorf("a decision failed %s after the change, want at most %s", l.right, swapWithin)
	}
	if l.slowest > swapTimeout {
		t.Errorf("a decision took %s, want at most store_timeout (%s)", l.slowest, swapTimeout)
	}
	l.checkUnits(t)
}

// checkUnits compares the units that the store admitted with the limit.
func (l *load) checkUnits(t *testing.T) {
	t.Helper()
	if l.admitted > swapLimit+l.between || l.admitted < swapLimit*9/10 {
		t.Errorf("%d units admitted by the store, want about the limit of %d, and at most %d more of the old master around the promotion",
			l.admitted, swapLimit, l.between)
	}
}

// TestDemotedServerIsLogged: the log says that the server refuses, and what to do about this cause.
func TestDemotedServerIsLogged(t *testing.T) {
	server := testredis.Start(t)
	var log logs.Text
	opened, g := opened(t, parsed(t, "version: 1\nstore_timeout: 5s\nstore: redis://"+server.Addr+
		"\nrules: [{name: a, key: [all], limits: [1000000/s]}]\n"), Options{Log: log.Logger()})
	until(t, func() bool { return decide(t, g, "/").StoreError == nil && reached(opened) })
	server.CLI("REPLICAOF", "127.0.0.1", "1")
	var text string
	until(t, func() bool { decide(t, g, "/"); text += log.Take(); return strings.Contains(text, "level=WARN") })
	for _, want := range []string{"redis server does not answer with decisions", "READONLY", "set the address of the master", "fallbacks=deny"} {
		if !strings.Contains(text, want) {
			t.Errorf("the log lacks %q: %s", want, text)
		}
	}
}
