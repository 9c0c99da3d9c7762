package documents

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
)

// job is one kind of work of a store on Redis. The tests observe it with MONITOR, and try it with
// the rights of the page. Its error is the store's error.
type job struct {
	name string
	run  func(t *testing.T, store *redis.Store) error
}

// limited returns a policy of 10 units per minute.
func limited(a headgate.Algorithm) headgate.Policy {
	p := headgate.Policy{Algorithm: a, Limit: headgate.Limit{Count: 10, Per: time.Minute}}
	switch a {
	case headgate.SlidingWindow:
		p.SubWindows = 4
	case headgate.Ban:
		p.BanFor = time.Minute
	default:
	}
	return p
}

// decide decides one group of policies. Each policy is one window of the key.
func decide(t *testing.T, store *redis.Store, key string, cost int64, policies ...headgate.Policy) ([]headgate.Decision, error) {
	t.Helper()
	ops, decisions := make([]headgate.Op, len(policies)), make([]headgate.Decision, len(policies))
	for i, p := range policies {
		id, err := store.Prepare(p)
		if err != nil {
			t.Fatal(err)
		}
		ops[i] = headgate.Op{Key: key, Policy: id, Window: uint8(i), Cost: cost}
	}
	return decisions, store.Apply(t.Context(), ops, decisions)
}

// jobs are all kinds of work of a store, the simple ones first.
func jobs() []job {
	bucket := limited(headgate.TokenBucket)
	one := func(name, key string, cost int64, policies ...headgate.Policy) job {
		return job{name, func(t *testing.T, store *redis.Store) error {
			t.Helper()
			_, err := decide(t, store, key, cost, policies...)
			return err
		}}
	}
	return []job{
		one("a request that passes", "a", 1, bucket),
		one("a request that is refused", "a", 10, bucket),
		one("a rule of two limits and a ban", "b", 1, limited(headgate.FixedWindow), limited(headgate.SlidingWindow), limited(headgate.Ban)),
		one("leaky_bucket", "c", 1, limited(headgate.LeakyBucket)),
		one("sliding_log", "d", 1, limited(headgate.SlidingLog)),
		{"a receipt that is returned", returned},
		{"units that are refunded", refunded},
		{"a key that is forgotten", func(t *testing.T, store *redis.Store) error {
			t.Helper()
			return store.Forget(t.Context(), []headgate.Op{{Key: "a"}})
		}},
	}
}

// returned takes units and returns them.
func returned(t *testing.T, store *redis.Store) error {
	t.Helper()
	decisions, err := decide(t, store, "r", 3, limited(headgate.TokenBucket))
	if err != nil {
		return err
	}
	return store.Return(t.Context(), []headgate.Receipt{decisions[0].Receipt})
}

// refunded gives units back to the sliding log of jobs.
func refunded(t *testing.T, store *redis.Store) error {
	t.Helper()
	id, err := store.Prepare(limited(headgate.SlidingLog))
	if err != nil {
		t.Fatal(err)
	}
	op := headgate.Op{Key: "d", Policy: id, Cost: 1, Kind: headgate.Refund}
	return store.Apply(t.Context(), []headgate.Op{op}, make([]headgate.Decision, 1))
}

// longLogs fills sliding logs until they need a list. It then returns all units of one log, and
// lets the units of the other log expire. A list is trimmed only while the log expires in parts: on a busy machine,
// all of it may expire between two decisions, and longLogs tries again.
func longLogs(t *testing.T, store *redis.Store) error {
	t.Helper()
	for range 10 {
		if inParts, err := longLog(t, store); inParts || err != nil {
			return err
		}
	}
	return errors.New("ten times, a whole log expired between two decisions")
}

// longLog is one attempt of longLogs. It reports whether the log expired in parts.
func longLog(t *testing.T, store *redis.Store) (inParts bool, err error) {
	t.Helper()
	const units = 400
	day := headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: units, Per: 24 * time.Hour}}
	second := headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: units, Per: 2 * time.Second}}
	var receipts []headgate.Receipt
	for range units {
		decisions, err := decide(t, store, "long", 1, day, second)
		if err != nil {
			return false, err
		}
		receipts = append(receipts, decisions[0].Receipt)
	}
	r := rand.New(rand.NewPCG(1, 2))
	r.Shuffle(len(receipts), func(i, j int) { receipts[i], receipts[j] = receipts[j], receipts[i] })
	for i := range receipts {
		if err := store.Return(t.Context(), receipts[i:i+1]); err != nil {
			return false, err
		}
	}
	// The entries of the second log expire one after another.
	look, end := time.NewTicker(5*time.Millisecond), time.After(20*time.Second)
	defer look.Stop()
	for {
		decisions, err := decide(t, store, "long", 0, day, second)
		if err != nil || decisions[1].Remaining == units {
			return inParts, err
		}
		inParts = inParts || decisions[1].Remaining > units/4 && decisions[1].Remaining < units*3/4
		select {
		case <-look.C:
		case <-end:
			return false, fmt.Errorf("after 20 s %d of %d remain", decisions[1].Remaining, units)
		}
	}
}

// TestCommands compares the page's commands with the commands that Redis receives, and with the
// commands that scripts run there.
func TestCommands(t *testing.T) {
	server := testserver.Start(t)
	m := newMonitor(t, server)
	var shown []string
	var store *redis.Store
	add := func(name string, commands []string) {
		shown = append(append(shown, "# "+name), commands...)
	}
	add("the first decision of a process, by a server that does not know the script", m.during(t, func() {
		store = openRedis(t, single(server), "", "")
		run(t, store, job{"first", func(t *testing.T, store *redis.Store) error {
			t.Helper()
			_, err := decide(t, store, "z", 1, limited(headgate.TokenBucket))
			return err
		}})
	}))
	for _, j := range []job{{"return", returned}, {"forget", func(t *testing.T, store *redis.Store) error {
		t.Helper()
		return store.Forget(t.Context(), []headgate.Op{{Key: "r"}})
	}}} {
		run(t, store, j) // The server must know the scripts before the test observes it.
	}
	server.CLI("FLUSHALL")
	for _, j := range jobs() {
		add(j.name, m.during(t, func() { run(t, store, j) }))
	}
	takes, frees := slotCommands(t, m, server, store)
	add("a request in flight", takes)
	add("its end", frees)
	seen := map[string]bool{}
	for _, line := range m.during(t, func() { run(t, store, job{"logs", longLogs}) }) {
		if strings.HasPrefix(line, "  ") {
			seen[strings.Fields(line)[0]] = true
		}
	}
	for _, line := range shown {
		delete(seen, strings.Fields(line)[0])
	}
	further := make([]string, 0, len(seen))
	for name := range seen {
		further = append(further, name)
	}
	slices.Sort(further)
	shown = append(shown, "# logs of more than 128 units, some of", "  "+strings.Join(further, " "))
	if got := block(t, "monitor"); !slices.Equal(got, shown) {
		t.Errorf("the block of %s differs from the observed commands:\n%s", storesPage, strings.Join(shown, "\n"))
	}
}

func run(t *testing.T, store *redis.Store, j job) {
	t.Helper()
	if err := j.run(t, store); err != nil {
		t.Fatalf("%s: %v", j.name, err)
	}
}
