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

	testserver "github.com/headgate/headgate/internal/testkit/etcd"
	"github.com/headgate/headgate/pace/etcd"
)

// fleet is processes on one etcd, for one provider.
type fleet struct {
	t      *testing.T
	server *testserver.Server
	limits etcd.Limits
	orders orders // what all are told
	dir    string
	all    []*member
}

// member is one process.
type member struct {
	command *exec.Cmd
	counts  []int64
	log     string
	ended   chan struct{}
}

const provider = "mail"

// The times of the tests: much shorter than one would choose, so that tests are.
const (
	ttl         = 3 * time.Second
	propagation = time.Second
)

// newFleet starts an etcd with a limit, and no process yet.
func newFleet(t *testing.T, limit int64, o orders) *fleet {
	t.Helper()
	server := testserver.Start(t)
	f := &fleet{t: t, server: server, limits: etcd.Limits{Client: server.Client()}, dir: t.TempDir()}
	if o.Endpoint == "" {
		o.Endpoint = server.Addr
	}
	o.First = time.Now().Unix()
	o.Depth = int(max(limit/5, 100))
	f.orders = o
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

// start starts so many more processes, all at once.
func (f *fleet) start(n int, change ...func(*orders)) []*member {
	f.t.Helper()
	begun := make([]*member, n)
	for i := range begun {
		o := f.orders
		for _, c := range change {
			c(&o)
		}
		begun[i] = f.launch(o)
	}
	return begun
}

func (f *fleet) launch(o orders) *member {
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
	m.command.Env = append(os.Environ(), ordersVariable+"="+string(text))
	m.command.Stdout, m.command.Stderr = log, log
	m.command.SysProcAttr = withParent()
	if err := m.command.Start(); err != nil {
		f.t.Fatal(err)
	}
	go func() {
		_ = m.command.Wait() // How it ended, its log says.
		close(m.ended)
	}()
	f.all = append(f.all, m)
	f.t.Cleanup(func() {
		m.kill()
		if f.t.Failed() {
			said, _ := os.ReadFile(m.log)
			f.t.Logf("%s said:\n%.4000s", o.ID, said)
		}
	})
	return m
}

// kill ends a process as if its machine had.
func (m *member) kill() {
	_ = m.command.Process.Kill() // It may have ended by itself.
	<-m.ended
}

// leave asks all processes to end, and waits for it.
func (f *fleet) leave(members ...*member) {
	var all sync.WaitGroup
	for _, m := range members {
		all.Go(func() {
			_ = m.command.Process.Signal(syscall.SIGTERM)
			select {
			case <-m.ended:
			case <-time.After(20 * time.Second):
				f.t.Errorf("a process does not end: %s", m.log)
			}
		})
	}
	all.Wait()
}

// given gives the units of all processes in a second.
func (f *fleet) given(second int64) int64 {
	var sum int64
	for _, m := range f.all {
		sum += m.in(f, second)
	}
	return sum
}

func (m *member) in(f *fleet, second int64) int64 {
	return atomic.LoadInt64(&m.counts[second-f.orders.First])
}

// now gives the second that it is.
func now() int64 { return time.Now().Unix() }

// settled waits until a second has passed in which the whole limit was used, so that all
// who were started take part, and gives the second after it.
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
	f.t.Fatalf("%d processes do not use %d a second: %v", members, limit, f.history(f.orders.First, now()))
	return 0
}

// until waits for the beginning of a second, and a little, so that all is counted that
// was given before.
func (f *fleet) until(second int64) {
	f.t.Helper()
	select {
	case <-time.After(time.Until(time.Unix(second, int64(20*time.Millisecond)))):
	case <-f.t.Context().Done():
	}
}

// history gives what was given in each second.
func (f *fleet) history(from, to int64) []int64 {
	var sums []int64
	for s := from; s < to; s++ {
		sums = append(sums, f.given(s))
	}
	return sums
}

// never says that no second has more than the limit, of those before to and not before from.
func (f *fleet) never(limit, from, to int64) {
	f.t.Helper()
	for s := from; s < to; s++ {
		if n := f.given(s); n > limit {
			f.t.Errorf("second %d has %d units of %d: %v", s-f.orders.First, n, limit, f.history(f.orders.First, to))
		}
	}
}

// used says that the seconds have at least so much of the limit.
func (f *fleet) used(part float64, limit, from, to int64) {
	f.t.Helper()
	var sum int64
	for _, n := range f.history(from, to) {
		sum += n
	}
	if got := float64(sum) / float64(limit*(to-from)); got < part {
		f.t.Errorf("used %.4f of %d a second: %v", got, limit, f.history(from, to))
	} else {
		f.t.Logf("used %.4f of %d a second", got, limit)
	}
}
