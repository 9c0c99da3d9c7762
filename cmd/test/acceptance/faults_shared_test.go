package acceptance

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	memcachedserver "github.com/headgate/headgate/internal/testkit/memcached"
	"github.com/headgate/headgate/internal/testkit/network"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// fault is a failure of a store under load.
type fault struct {
	name string
	// begin causes the fault, and end removes it.
	begin func(*network.Link, *testserver.Server)
	end   func(*network.Link, *testserver.Server)
	// said is a text in the log when the breaker opens.
	said string
}

func heal(way *network.Link, _ *testserver.Server) { way.Heal() }

// linkFaults are failures of the connection to a server.
func linkFaults() []fault {
	type way = *network.Link
	on := func(do func(*network.Link)) func(*network.Link, *testserver.Server) {
		return func(l *network.Link, _ *testserver.Server) { do(l) }
	}
	const slow = 3 * time.Second // longer than every timeout
	return []fault{
		{name: "a cut", begin: on(way.Cut), end: heal, said: "could not decide"},
		{name: "latency", begin: on(func(l way) { l.Latency(slow/2, slow/2, 0) }), end: heal, said: "could not decide"},
		{name: "no answers", begin: on(way.NoAnswers), end: heal, said: "could not decide"},
		{name: "half open", begin: on(way.HalfOpen), end: heal, said: "could not decide"},
		{name: "bandwidth", begin: on(func(l way) { l.Bandwidth(1) }), end: heal, said: "could not decide"},
	}
}

// serverFaults are failures of a server.
func serverFaults() []fault {
	set := func(name, value string) func(*network.Link, *testserver.Server) {
		return func(_ *network.Link, s *testserver.Server) { s.CLI("CONFIG", "SET", name, value) }
	}
	return []fault{
		{name: "out of memory", begin: set("maxmemory", "1"), end: set("maxmemory", "0"), said: "raise maxmemory"},
		{
			name: "paused", said: "could not decide",
			begin: func(_ *network.Link, s *testserver.Server) { s.Pause() },
			end:   func(_ *network.Link, s *testserver.Server) { s.Resume() },
		},
		{name: "a script that does not end", begin: runForever, end: killScript, said: "could not decide"},
		{name: "too few replicas", begin: set("min-replicas-to-write", "1"), end: set("min-replicas-to-write", "0"), said: "NOREPLICAS"},
	}
}

// runForever blocks the server with a script. After a tenth of a second, the server answers BUSY
// to other clients.
func runForever(_ *network.Link, s *testserver.Server) {
	s.CLI("CONFIG", "SET", "busy-reply-threshold", "100")
	go func() { _, _ = s.Do("EVAL", "while true do end", "0") }() // ends with an error, or with the test
}

func killScript(_ *network.Link, s *testserver.Server) {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if _, err := s.Do("SCRIPT", "KILL"); err == nil || strings.Contains(err.Error(), "NOTBUSY") {
			return
		}
	}
}

// TestFaultsOfASharedStore injects each fault. Every request is answered, and a fallback decides
// until the fault ends. No key gets more than its limit from the store, and calls that timed out
// count as used. The log has one line when the breaker opens, and one when it closes.
func TestFaultsOfASharedStore(t *testing.T) {
	t.Parallel()
	c := circumstances{timeout: 300 * time.Millisecond, keys: 10, rate: 150}
	for _, f := range append(linkFaults(), serverFaults()...) {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			f.befall(t, c)
		})
	}
}

func (f *fault) befall(t *testing.T, c circumstances) *ledger {
	t.Helper()
	server := testserver.Start(t)
	way := network.New(t, server.Addr)
	c.store = "redis://" + way.Addr
	return f.through(t, c, way, server)
}

// through injects the fault into a store that is reached through a link.
func (f *fault) through(t *testing.T, c circumstances, way *network.Link, server *testserver.Server) *ledger {
	t.Helper()
	o := c.open(t)
	o.begin(c)
	f.begin(way, server)
	eventually(t, "a server that is given up", func() bool { return o.series("store_up") == 0 })
	gone, before := time.Now(), o.fallbacks()
	eventually(t, "fallbacks", func() bool { return o.fallbacks() > before+float64(c.rate)/2 })
	healed := time.Now()
	f.end(way, server)
	eventually(t, "a server that is asked again", func() bool { return o.series("store_up") == 1 })
	o.calm()
	o.untilUsed()
	o.load.end() // Requests in flight would be counted after the check.
	counted := o.counted("/allow/0")
	l := o.end()
	if lost := l.within(none); lost != 0 {
		t.Errorf("%d units were lost", lost)
	}
	l.changes(way.Addr)
	if l.lines(givenUp, f.said) == 0 {
		t.Errorf("the log does not say %q\n%s", f.said, l.log)
	}
	if half := quantile(l.fellIn(gone, healed), 0.5); half > c.timeout/10 {
		t.Errorf("half of the fallback decisions with an open breaker took %v or more: want no wait", half)
	}
	if a := l.keys["/allow/0"]; counted < min(a.admitted, limitOf(a.rule)) {
		t.Errorf("the store has counted %d of /allow/0 and admitted %d", counted, a.admitted)
	}
	l.tell(0, fmt.Sprintf("the last fallback came %v after the end of the fault", l.lastFall.Sub(healed)))
	return l
}

// TestFaultsOfMemcached injects the link faults into a Memcached server.
func TestFaultsOfMemcached(t *testing.T) {
	t.Parallel()
	c := circumstances{timeout: 300 * time.Millisecond, log: "fixed_window", keys: 10, rate: 150}
	for _, f := range linkFaults() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			way, c := network.New(t, memcachedserver.Start(t).Addr), c
			c.store, f.said = "memcached://"+way.Addr, givenUp
			f.through(t, c, way, nil)
		})
	}
}

// counted sends one request for a path, which counts too, and gives the store's count.
func (o *outage) counted(path string) int {
	o.t.Helper()
	resp, _ := get(o.t, "http://"+o.i.Proxy+path)
	left := resp.Header.Get("RateLimit")
	_, rest, found := strings.Cut(left, "r=")
	var n int
	if _, err := fmt.Sscan(strings.TrimRight(strings.Split(rest, ";")[0], " "), &n); !found || err != nil {
		o.t.Fatalf("%s is answered with RateLimit %q: %v", path, left, err)
	}
	return limitOf("allow") - n
}

// TestResetsUnderLoad: connections are reset again and again. Only calls on these connections
// fail, and no key gets more than its limit.
func TestResetsUnderLoad(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t)
	way := network.New(t, server.Addr)
	c := circumstances{store: "redis://" + way.Addr, timeout: 300 * time.Millisecond, keys: 10, rate: 150}
	o := c.open(t)
	o.begin(c)
	for range 10 {
		accepted := way.Accepted()
		way.Reset()
		answered := o.load.answered()
		// Fallbacks answer too. The next reset needs a new connection to the store.
		eventually(t, "answers and a connection after a reset", func() bool {
			return o.load.answered() > answered+5 && way.Accepted() > accepted
		})
	}
	o.calm()
	o.untilUsed()
	l := o.end()
	if lost := l.within(none); lost != 0 {
		t.Errorf("%d units were lost", lost)
	}
	if way.Accepted() < 10 {
		t.Errorf("%d connections in all: the resets have not met any", way.Accepted())
	}
	l.tell(0, fmt.Sprint(way.Accepted(), " connections"))
}

// TestScriptsForgottenUnderLoad: a server loses its scripts again and again, and no request
// fails.
func TestScriptsForgottenUnderLoad(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t)
	c := circumstances{store: "redis://" + server.Addr, timeout: 2 * time.Second, keys: 10, rate: 150}
	o := c.open(t)
	o.begin(c)
	flushed := 0
	for o.load.answered() < len(o.load.paths)*(limitOf("")+2) {
		if _, err := server.Do("SCRIPT", "FLUSH"); err != nil {
			t.Fatal(err)
		}
		flushed++
	}
	l := o.end()
	l.within(none)
	if fell, _, _ := l.fallen(); fell != 0 || flushed < 100 {
		t.Errorf("fallbacks decided %d of %d requests while the scripts were forgotten %d times", fell, len(l.shots), flushed)
	}
	l.tell(0, fmt.Sprint("scripts forgotten ", flushed, " times"))
}

// TestStartWithoutStore: an instance starts while its store is down. Its fallbacks decide, and
// the log reports the store when it is up.
func TestStartWithoutStore(t *testing.T) {
	t.Parallel()
	server := testserver.Start(t)
	server.Kill()
	c := circumstances{store: "redis://" + server.Addr, timeout: 300 * time.Millisecond, keys: 10, rate: 150}
	o := c.open(t)
	for path, want := range map[string]int{"/allow/0": 204, "/deny/0": 503, "/local/0": 204} {
		if resp, body := get(t, "http://"+o.i.Proxy+path); resp.StatusCode != want {
			t.Errorf("%s without a store: %d, want %d: %s", path, resp.StatusCode, want, body)
		}
	}
	if resp, _ := get(t, "http://"+o.i.Health+"/readyz"); resp.StatusCode != http.StatusOK {
		t.Errorf("an instance that has fallbacks is not ready: %d", resp.StatusCode)
	}
	o.begin(c)
	server.Restart()
	eventually(t, "a decision by the store", func() bool { return o.series("store_decisions_total") > 0 })
	o.calm()
	o.untilUsed()
	l := o.end()
	if lost := l.within(none); lost != 0 {
		t.Errorf("%d units were lost", lost)
	}
	l.changes(server.Addr)
	l.tell(0, "")
}

// TestStopWhileStoreHangs: SIGTERM stops an instance with a hanging store. Waiting requests get
// their fallback after store_timeout. If store_timeout is longer than shutdown_timeout, they are
// aborted after shutdown_timeout.
func TestStopWhileStoreHangs(t *testing.T) {
	t.Parallel()
	stopWhileStoreHangs(t, 5*time.Second)
}

// stopWhileStoreHangs allows the process to end later than shutdown_timeout by the time late.
func stopWhileStoreHangs(t *testing.T, late time.Duration) {
	t.Helper()
	for _, c := range []struct {
		name              string
		timeout, shutdown time.Duration
		status, answer    int // of the process and of each request; 0 is any
	}{
		{"the budget ends first", 500 * time.Millisecond, 4 * time.Second, 0, http.StatusServiceUnavailable},
		{"the grace ends first", 30 * time.Second, time.Second, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := testserver.Start(t)
			o := circumstances{
				store: "redis://" + server.Addr, timeout: c.timeout, keys: 1, rate: 1,
				more: fmt.Sprint("shutdown_timeout: ", c.shutdown),
			}.open(t)
			get(t, "http://"+o.i.Proxy+"/deny/0")
			server.Pause()
			client := newLoad("http://"+o.i.Proxy, 0, nil)
			defer client.end()
			const waiting = 4 // too few to open the breaker: each request waits for its own timeout
			answers := make(chan shot, waiting)
			for range waiting {
				go func() { answers <- client.ask("/deny/0") }()
			}
			eventually(t, "requests that wait", func() bool { return o.series("proxy_in_flight") == waiting })
			began := time.Now()
			if status := o.i.stop(); status != c.status {
				t.Errorf("exit status %d, want %d\n%s", status, c.status, o.i.text())
			}
			elapsed := time.Since(began)
			t.Logf("the end took %v, shutdown_timeout is %v", elapsed, c.shutdown)
			if elapsed > c.shutdown+late {
				t.Errorf("the end took %v: want %v, and at most %v more", elapsed, c.shutdown, late)
			}
			for range waiting {
				if s := <-answers; c.answer != 0 && s.status != c.answer {
					t.Errorf("a request in flight got %d, %v: want %d", s.status, s.err, c.answer)
				}
			}
		})
	}
}
