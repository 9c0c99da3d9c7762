//go:build unix

package fleet

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/testkit/etcdclient"

	testserver "github.com/headgate/headgate/internal/testkit/etcd"
	"github.com/headgate/headgate/pace/etcd"
)

// fleet has the processes on one etcd, for one provider.
type fleet struct {
	t        *testing.T
	server   *testserver.Server
	limits   etcd.Limits
	settings settings // settings of all processes
	dir      string
	all      []*member
}

// member is one process.
type member struct {
	command *exec.Cmd
	counts  []int64
	log     string
	ended   chan struct{}
}

const provider = "mail"

// These times are much shorter than usual, so that the tests are short.
const (
	ttl         = 3 * time.Second
	propagation = time.Second
)

// newFleet starts an etcd with a limit, but no process.
func newFleet(t *testing.T, limit int64, o settings) *fleet {
	t.Helper()
	server := testserver.Start(t)
	f := &fleet{t: t, server: server, limits: etcd.Limits{Client: etcdclient.New(t, server.Addr)}, dir: t.TempDir()}
	if o.Endpoint == "" {
		o.Endpoint = server.Addr
	}
	o.First = time.Now().Unix()
	o.Depth = int(max(limit/5, 100))
	f.settings = o
	f.set(limit)
	return f
}

// set changes the limit.
func (f *fleet) set(limit int64) {
	f.t.Helper()
	if _, err := f.limits.Set(f.t.Context(), provider, etcd.Limit{Count: limit, Per: time.Second}, etcd.AnyRevision); err != nil {
		f.t.Fatal(err)
	}
}

// start starts n more processes at the same time.
func (f *fleet) start(n int, change ...func(*settings)) []*member {
	f.t.Helper()
	begun := make([]*member, n)
	for i := range begun {
		o := f.settings
		for _, c := range change {
			c(&o)
		}
		begun[i] = f.launch(o)
	}
	return begun
}

func (f *fleet) launch(o settings) *member {
	f.t.Helper()
	o.ID = fmt.Sprintf("process-%d", len(f.all))
	o.Counts = filepath.Join(f.dir, o.ID)
	counts, err := openCounts(o.Counts)
	if err != nil {
		f.t.Fatal(err)
	}
	text, err := json.Marshal(o)
	if err != nil {
		f.t.Fatal(err)
	}
	m := &member{counts: counts, log: o.Counts + ".log", ended: make(chan struct{})}
	log, err := os.Create(m.log)
	if err != nil {
		f.t.Fatal(err)
	}
	defer log.Close()
	m.command = exec.Command(os.Args[0])
	m.command.Env = append(os.Environ(), settingsVariable+"="+string(text))
	m.command.Stdout, m.command.Stderr = log, log
	m.command.SysProcAttr = withParent()
	if err := m.command.Start(); err != nil {
		f.t.Fatal(err)
	}
	go func() {
		_ = m.command.Wait() // The log of the process has the cause of its end.
		close(m.ended)
	}()
	f.all = append(f.all, m)
	f.t.Cleanup(func() {
		m.kill()
		if f.t.Failed() {
			said, _ := os.ReadFile(m.log)
			f.t.Logf("log of %s:\n%.4000s", o.ID, said)
		}
	})
	return m
}

// kill ends a process without a shutdown, like a machine that fails.
func (m *member) kill() {
	_ = m.command.Process.Kill() // Kill fails if the process has already ended.
	<-m.ended
}

// leave signals the processes to end, and waits for their end.
func (f *fleet) leave(members ...*member) {
	var all sync.WaitGroup
	for _, m := range members {
		all.Go(func() {
			_ = m.command.Process.Signal(syscall.SIGTERM)
			select {
			case <-m.ended:
			case <-time.After(20 * time.Second):
				f.t.Errorf("a process has not ended 20 s after SIGTERM: see its log %s", m.log)
			}
		})
	}
	all.Wait()
}

// given returns the units of all processes in a second.
func (f *fleet) given(second int64) int64 {
	var sum int64
	for _, m := range f.all {
		sum += m.in(f, second)
	}
	return sum
}

func (m *member) in(f *fleet, second int64) int64 {
	return atomic.LoadInt64(&m.counts[second-f.settings.First])
}

// now returns the current second.
func now() int64 { return time.Now().Unix() }

// settled waits for a second in which the whole limit was used by at least members processes.
// It returns the second after it.
func (f *fleet) settled(limit int64, members int) int64 {
	f.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for time.Now().Before(deadline) {
		second := now()
		f.until(second + 1)
		taking := 0
		for _, m := range f.all {
			if m.in(f, second) > 0 {
				taking++
			}
		}
		if f.given(second) == limit && (taking >= members || limit < int64(members)) {
			return second + 1
		}
	}
	f.t.Fatalf("after 30 s, %d processes do not use the limit of %d a second; units of each second: %v", members, limit, f.history(f.settings.First, now()))
	return 0
}

// until waits until 20 ms after the start of a second, so that all units of the seconds
// before are counted.
func (f *fleet) until(second int64) {
	f.t.Helper()
	select {
	case <-time.After(time.Until(time.Unix(second, int64(20*time.Millisecond)))):
	case <-f.t.Context().Done():
	}
}

// history returns the units of each second in [from, to).
func (f *fleet) history(from, to int64) []int64 {
	var sums []int64
	for s := from; s < to; s++ {
		sums = append(sums, f.given(s))
	}
	return sums
}

// never checks that no second in [from, to) has more units than the limit.
func (f *fleet) never(limit, from, to int64) {
	f.t.Helper()
	for s := from; s < to; s++ {
		if n := f.given(s); n > limit {
			f.t.Errorf("second %d has %d units, want at most %d; units of each second: %v", s-f.settings.First, n, limit, f.history(f.settings.First, to))
		}
	}
}

// used checks that the seconds in [from, to) use at least this part of the limit.
func (f *fleet) used(part float64, limit, from, to int64) {
	f.t.Helper()
	var sum int64
	for _, n := range f.history(from, to) {
		sum += n
	}
	if got := float64(sum) / float64(limit*(to-from)); got < part {
		f.t.Errorf("used %.4f of %d a second, want at least %v; units of each second: %v", got, limit, part, f.history(from, to))
	} else {
		f.t.Logf("used %.4f of %d a second", got, limit)
	}
}
