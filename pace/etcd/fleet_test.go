package etcd

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/pace/schedule"
	"github.com/headgate/headgate/internal/testkit/etcd"
	"github.com/headgate/headgate/internal/testkit/network"
	"github.com/headgate/headgate/pace"
)

// TestMain allows more parallel tests, because the tests mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	flag.Set("test.parallel", "8")
	os.Exit(m.Run())
}

const (
	long     = 20 * time.Second // a bound for events that take a second on an idle machine
	provider = "mail"
)

// fleet has instances of one provider on one etcd, and counts their units. Each instance uses
// its whole part as soon as it may.
type fleet struct {
	t      *testing.T
	server *etcd.Server
	limits Limits
	config Config // of each instance, without Client and ID

	mu        sync.Mutex
	instances []*instance
}

// instance is a pace.Receiver that records its plans.
type instance struct {
	fleet  *fleet
	id     string
	client *clientv3.Client
	link   *network.Link
	source *Source
	end    func() // returns when Follow has returned

	mu       sync.Mutex
	timeline schedule.Timeline
	plans    []pace.Assignment
	valid    time.Time
	taken    map[headgate.Instant]int64  // units by the start of a window
	idle     map[headgate.Instant]string // the reason why nothing could be used, by time
	brakes   []pace.Brake
	faults   []string
	offsets  []time.Duration
	demand   int64
}

// base converts monotonic times to numbers.
var base = time.Now()

func wall() headgate.Instant { return headgate.Instant(time.Now().UnixNano()) }

func startFleet(t *testing.T) *fleet {
	t.Helper()
	server := etcd.Start(t)
	f := &fleet{t: t, server: server, limits: Limits{Client: newClient(t, server.Addr)}}
	f.config = Config{
		Provider: provider, TTL: time.Minute, Propagation: 300 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	return f
}

// set replaces the limit.
func (f *fleet) set(count int64, per time.Duration, b Balance) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), long)
	defer cancel()
	if _, err := f.limits.Set(ctx, provider, Limit{count, per, b}, AnyRevision); err != nil {
		f.t.Fatal(err)
	}
}

// put writes a value directly, as another program would.
func (f *fleet) put(key, value string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), long)
	defer cancel()
	if _, err := f.limits.Client.Put(ctx, key, value); err != nil {
		f.t.Fatal(err)
	}
}

// join starts an instance with its own network connection.
func (f *fleet) join(id string, change ...func(*Config)) *instance {
	f.t.Helper()
	link := network.New(f.t, f.server.Addr)
	i := &instance{fleet: f, id: id, link: link, client: newClient(f.t, link.Addr), taken: map[headgate.Instant]int64{}, idle: map[headgate.Instant]string{}}
	c := f.config
	c.Client, c.ID = i.client, id
	for _, set := range change {
		set(&c)
	}
	source, err := New(c)
	if err != nil {
		f.t.Fatal(err)
	}
	i.source = source
	ctx, cancel := context.WithCancel(f.t.Context())
	var work sync.WaitGroup
	work.Go(func() {
		if err := source.Follow(ctx, i); err != nil {
			f.t.Errorf("%s: Follow gives %v", id, err)
		}
		i.mu.Lock()
		i.valid = time.Time{}.Add(1)
		i.mu.Unlock()
	})
	work.Go(func() { i.take(ctx) })
	i.end = func() { cancel(); work.Wait() }
	f.t.Cleanup(i.end)
	f.mu.Lock()
	f.instances = append(f.instances, i)
	f.mu.Unlock()
	return i
}

// crash ends an instance without a message, like kill -9.
func (i *instance) crash() {
	i.link.Cut()
	i.end()
}

// take uses the parts at the start of each window.
func (i *instance) take(ctx context.Context) {
	for tick := time.NewTicker(5 * time.Millisecond); ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-tick.C:
			i.mu.Lock()
			i.look()
			i.mu.Unlock()
		}
	}
}

// look uses the part of the present window, once, if the instance may.
func (i *instance) look() {
	now, at := time.Now(), wall()
	w, ok := i.timeline.At(at, headgate.Instant(now.Sub(base)))
	if ok && now.Before(i.valid) {
		if _, known := i.taken[w.Start]; !known {
			i.taken[w.Start] = w.Part
		}
	} else if len(i.taken) > 0 {
		i.idle[at] = fmt.Sprintf("a plan holds: %v, valid for %v", ok, i.valid.Sub(now))
	}
}

func (i *instance) Assign(a pace.Assignment) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if a.From == 0 || a.Settled.IsZero() {
		i.fleet.t.Errorf("%s is told a plan from %v, settled at %v", i.id, a.From, a.Settled)
	}
	if n := len(i.plans); n > 0 {
		if last := i.plans[n-1]; a.Revision < last.Revision || a.Revision == last.Revision && a.From <= last.From {
			i.fleet.t.Errorf("%s is told revision %d from %v after %d from %v", i.id, a.Revision, a.From, last.Revision, last.From)
		}
	}
	i.plans = append(i.plans, a)
	settled := headgate.Instant(a.Settled.Sub(base))
	i.timeline.Add(schedule.Change{Plan: a.Plan, From: a.From, Settled: settled, Revision: a.Revision})
}

func (i *instance) ValidUntil(t time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.valid = t
}

func (i *instance) Brake(b pace.Brake) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.brakes = append(i.brakes, b)
}

func (i *instance) ClockOffset(d time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.offsets = append(i.offsets, d)
}

func (i *instance) Fault(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.faults = append(i.faults, err.Error())
}

// Rate implements pace.Receiver. This source gives plans.
func (*instance) Rate(pace.Rate) {}

// Requested implements pace.Receiver.
func (*instance) Requested() (total, waiting int64) { return 0, 0 }

func (i *instance) Demand() int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.demand
}

func (i *instance) wants(units int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.demand = units
}

// newest gives the last received plan, or an empty plan.
func (i *instance) newest() schedule.Plan {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.plans) == 0 {
		return schedule.Plan{}
	}
	return i.plans[len(i.plans)-1].Plan
}

// lost reports whether the instance may use nothing.
func (i *instance) lost() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return !time.Now().Before(i.valid)
}

func (i *instance) faulty(text string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.ContainsFunc(i.faults, func(f string) bool { return strings.Contains(f, text) })
}

// sums gives the units of all instances by window.
func (f *fleet) sums() map[headgate.Instant]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[headgate.Instant]int64{}
	for _, i := range f.instances {
		i.mu.Lock()
		for start, units := range i.taken {
			all[start] += units
		}
		i.mu.Unlock()
	}
	return all
}

// atMost fails when all instances together used more than limit in a window.
func (f *fleet) atMost(limit int64) {
	f.t.Helper()
	for start, units := range f.sums() {
		if units > limit {
			f.t.Errorf("%d units in the window at %v: want %d at most: %s", units, start.Time(), limit, f.who(start))
		}
	}
}

func (f *fleet) who(start headgate.Instant) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := ""
	for _, i := range f.instances {
		i.mu.Lock()
		text += fmt.Sprintf("\n%s took %d;", i.id, i.taken[start])
		for _, a := range i.plans {
			text += fmt.Sprintf(" [revision %d: %d of %d among %d from %v]", a.Revision, a.Plan.Part(a.Plan.Window(start)), a.Plan.Limit, a.Plan.Instances, a.From.Time().Format(".000"))
		}
		i.mu.Unlock()
	}
	return text
}

// until waits for a condition.
func (f *fleet) until(what string, is func() bool) {
	f.t.Helper()
	deadline := time.Now().Add(long)
	for !is() {
		if time.Now().After(deadline) {
			f.t.Fatalf("not within %v: %s: %s", long, what, f.who(slices.Max(append(slices.Collect(maps.Keys(f.sums())), 0))))
		}
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // sleep: it polls, and there is a deadline
	}
}

// share waits until the given instances use the whole limit in three windows from now on, and no
// other instance uses anything.
func (f *fleet) share(limit int64, among ...*instance) {
	f.t.Helper()
	since := wall()
	f.until(fmt.Sprintf("%d instances take %d units together", len(among), limit), func() bool {
		all := f.sums()
		full := 0
		for start, units := range all {
			if start < since || units != limit {
				continue
			}
			whole := int64(0)
			for _, i := range among {
				i.mu.Lock()
				units, taken := i.taken[start]
				i.mu.Unlock()
				if whole += units; !taken {
					whole = -limit
				}
			}
			if whole == limit {
				full++
			}
		}
		return full >= 3
	})
}

// steady fails when a started instance used less than least in a window, or could use nothing at
// some time.
func (f *fleet) steady(i *instance, least int64) {
	f.t.Helper()
	i.mu.Lock()
	defer i.mu.Unlock()
	for at, why := range i.idle {
		f.t.Errorf("%s could take nothing at %v: %s", i.id, at.Time(), why)
	}
	for start, units := range i.taken {
		if units < least {
			f.t.Errorf("%s took %d in the window at %v: want %d", i.id, units, start.Time(), least)
		}
	}
}

func brakeOf(percent int, d time.Duration, reason string) pace.Brake {
	return pace.Brake{Until: time.Now().Add(d), Percent: percent, Reason: reason}
}

// closedClient gives a client that reaches no server.
func closedClient(t *testing.T) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	return c
}
