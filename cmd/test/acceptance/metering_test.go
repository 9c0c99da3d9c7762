package acceptance

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// metered is a proxy with metering: the units of a plan, the service, a folder, the endpoint, and the folder again.
const metered = `version: 1
max_memory: 16MiB
shutdown_timeout: 5s
rules:
  - {name: api, key: [header:X-Customer], quota: api_calls, cost: "header:X-Cost"}
default_plan: paid
plans:
  paid: {after: meter, quotas: {api_calls: [{limit: %d/365d, hard: %d}]}}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
metering:
  journal: %s/journal
  every: 1s
  events: {url: "%s", timeout: 2s}
  lines: {folder: %s/lines}
`

// usedUnits is what was decided for one customer.
type usedUnits struct {
	Admitted int64 `json:"admitted"`
	Metered  int64 `json:"metered"`
	Refused  int64 `json:"refused"`
}

func (u usedUnits) plus(v usedUnits) usedUnits {
	return usedUnits{u.Admitted + v.Admitted, u.Metered + v.Metered, u.Refused + v.Refused}
}

// usageEvent is an event or a line.
type usageEvent struct {
	usedUnits

	ID       string          `json:"id"`
	Customer string          `json:"customer"`
	Minute   string          `json:"minute"`
	Data     json.RawMessage `json:"data"`
}

// billing is an endpoint that fails now and then: it answers 500, with and without keeping the events, and it is slow.
type billing struct {
	mu       sync.Mutex
	events   map[string]usageEvent
	requests int
	twice    int
	changed  []string // ids that came with other contents
	away     atomic.Bool
	arrived  atomic.Int64
	slow     time.Duration // how long each fifth request waits
}

func (b *billing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var all []usageEvent
	if err := json.NewDecoder(r.Body).Decode(&all); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if b.slow > 0 && b.arrived.Add(1)%5 == 3 {
		<-time.After(b.slow)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests++
	if b.away.Load() || b.requests%5 == 1 {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	for i := range all {
		e := all[i]
		if err := json.Unmarshal(e.Data, &e); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if former, known := b.events[e.ID]; known {
			b.twice++
			if former.usedUnits != e.usedUnits || former.Customer != e.Customer || former.Minute != e.Minute {
				b.changed = append(b.changed, e.ID)
			}
		}
		b.events[e.ID] = e
	}
	if b.requests%5 == 2 {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// sums adds up the events by customer.
func (b *billing) sums() map[string]usedUnits {
	b.mu.Lock()
	defer b.mu.Unlock()
	return sumsOf(b.events)
}

func sumsOf(events map[string]usageEvent) map[string]usedUnits {
	sums := map[string]usedUnits{}
	for _, e := range events {
		sums[e.Customer] = sums[e.Customer].plus(e.usedUnits)
	}
	return sums
}

// linesIn reads the files of lines.
func linesIn(t *testing.T, folder string) map[string]usageEvent {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "lines", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]usageEvent{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var e usageEvent
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatalf("%s: %v in %q", name, err, line)
			}
			all[e.ID] = e
		}
	}
	return all
}

// usageBook keeps what the clients of one process were answered.
type usageBook struct {
	mu      sync.Mutex
	decided map[string]usedUnits
	broken  int // requests without an answer
}

// spendMany sends requests of customers with several connections, until n are sent or stop is closed.
func (l *usageBook) spendMany(t *testing.T, address string, worker, n, customers int, stop <-chan struct{}) {
	t.Helper()
	client := &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	for k := range n {
		select {
		case <-stop:
			return
		default:
		}
		customer, cost := fmt.Sprint("customer-", (worker+k)%customers), int64(1+k%3)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/", http.NoBody)
		if err != nil {
			t.Error(err)
			return
		}
		req.Header.Set("X-Customer", customer)
		req.Header.Set("X-Cost", strconv.FormatInt(cost, 10))
		answer, err := client.Do(req)
		l.note(customer, cost, answer, err)
		if err != nil {
			return
		}
		_ = answer.Body.Close()
		if stop != nil {
			<-time.After(time.Millisecond) // The load is for a time, not for a number, and leaves the processor to others.
		}
	}
}

func (l *usageBook) note(customer string, cost int64, answer *http.Response, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.broken++
		return
	}
	var u usedUnits
	if answer.StatusCode == http.StatusOK {
		u.Admitted = cost
		u.Metered, _ = strconv.ParseInt(answer.Header.Get("Headgate-Metered"), 10, 64) // It is 0 without the field.
	} else {
		u.Refused = cost
	}
	l.decided[customer] = l.decided[customer].plus(u)
}

// meteredLoad says how much a test of metering does.
type meteredLoad struct {
	processes, decisions, customers int
	// slow is how long the endpoint waits with each fifth answer.
	slow time.Duration
}

// TestMetering: two processes meter some thousand decisions, and the endpoint misbehaves. The processes are stopped and started
// again. TestMeteringKilled kills one.
func TestMetering(t *testing.T) {
	t.Parallel()
	meterMany(t, meteredLoad{processes: 2, decisions: 3000, customers: 40})
}

func meterMany(t *testing.T, load meteredLoad) {
	t.Helper()
	bills := &billing{events: map[string]usageEvent{}, slow: load.slow}
	endpoint := httptest.NewServer(bills)
	t.Cleanup(endpoint.Close)
	upstream := upstreamOfQuotas(t)
	per := load.decisions / load.processes
	share := int64(2 * per / load.customers) // Of the units of a customer: about two for each decision.
	book := &usageBook{decided: map[string]usedUnits{}}
	var folders []string
	var all []*instance
	for range load.processes {
		folder := t.TempDir()
		folders = append(folders, folder)
		all = append(all, launch(t, file(t, fmt.Sprintf(lasting(metered), share/2, share*9/10, upstream, folder, endpoint.URL, folder)+adminAnywhere)))
	}
	const workers = 4
	var sending sync.WaitGroup
	for n, i := range all {
		for worker := range workers {
			sending.Go(func() { book.spendMany(t, i.Proxy, 1000*n+worker, per/workers, load.customers, nil) })
		}
	}
	sending.Wait()
	for n, i := range all {
		if status := i.stop(); status != 0 {
			t.Errorf("process %d ended with %d\n%s", n, status, i.text())
		}
	}
	for n := range all { // What a stopped process has not delivered comes after the next start.
		again := launch(t, all[n].path)
		left := pendingOf(t, again)
		t.Logf("process %d has %d records to deliver after its start", n, left)
		eventually(t, "the journal is empty", func() bool { return pendingOf(t, again) == 0 })
		again.stop()
	}
	wantSums(t, "events", bills.sums(), book.decided)
	lines := map[string]usageEvent{}
	for _, folder := range folders {
		maps.Copy(lines, linesIn(t, folder))
	}
	wantSums(t, "lines", sumsOf(lines), book.decided)
	if bills.twice == 0 || len(bills.changed) > 0 || book.broken > 0 {
		t.Errorf("%d events came twice, %d requests broke, and these ids came with other contents: %v", bills.twice, book.broken, bills.changed)
	}
	t.Logf("%d decisions of %d processes: %d events in %d requests, %d of them twice", load.decisions, load.processes, len(bills.events),
		bills.requests, bills.twice)
}

func wantSums(t *testing.T, what string, got, want map[string]usedUnits) {
	t.Helper()
	for customer, u := range want {
		if got[customer] != u {
			t.Errorf("%s: %s has %+v, and %+v was decided", what, customer, got[customer], u)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d customers, want %d", what, len(got), len(want))
	}
}

// meteringState is the part metering of a process's status.
type meteringState struct {
	Written uint64 `json:"written"`
	Outputs []struct {
		Pending uint64 `json:"pending"`
	} `json:"outputs"`
}

// pendingOf gives the number of records that the outputs of a process have not delivered.
func pendingOf(t *testing.T, i *instance) (n uint64) {
	t.Helper()
	for _, out := range meteringOf(t, i).Outputs {
		n += out.Pending
	}
	return n
}

func meteringOf(t *testing.T, i *instance) meteringState {
	t.Helper()
	var s struct {
		Metering meteringState `json:"metering"`
	}
	_, text := get(t, "http://"+i.Admin+"/api/v1/status")
	if err := json.Unmarshal([]byte(text), &s); err != nil || len(s.Metering.Outputs) != 2 {
		t.Fatalf("%v in %s", err, text)
	}
	return s.Metering
}

// TestMeteringKilled kills a process under load some times. Everything but the last second is there, and no id comes twice.
func TestMeteringKilled(t *testing.T) {
	t.Parallel()
	meterKilled(t, 2, 100*time.Millisecond, 0)
}

// moment is what was decided at a time.
type moment struct {
	at    time.Time
	units int64
}

// watch notes what was decided, every few milliseconds.
func (l *usageBook) watch(stop chan struct{}) (all []moment) {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return all
		case now := <-tick.C:
			all = append(all, moment{now, l.total()})
		}
	}
}

// lost gives how much of the time before the kill is missing in records with a sum of units.
func lost(all []moment, killed time.Time, units int64) time.Duration {
	missing := time.Duration(0)
	for _, m := range all {
		if m.at.Before(killed) && m.units > units {
			missing = max(missing, killed.Sub(m.at))
		}
	}
	return missing
}

// meterKilled kills a process some time after a write of its journal, and gives how much of the time before a kill was missing
// at most.
func meterKilled(t *testing.T, kills int, load, late time.Duration) (missing time.Duration) {
	t.Helper()
	bills := &billing{events: map[string]usageEvent{}}
	endpoint := httptest.NewServer(bills)
	t.Cleanup(endpoint.Close)
	folder := t.TempDir()
	path := file(t, fmt.Sprintf(lasting(metered), 1000, 1_000_000, upstreamOfQuotas(t), folder, endpoint.URL, folder)+adminAnywhere)
	var least, most int64
	watched, killed := make([][]moment, kills), make([]time.Time, kills)
	for n := range kills {
		i := launch(t, path)
		book := &usageBook{decided: map[string]usedUnits{}}
		stop := make(chan struct{})
		var sending sync.WaitGroup
		for worker := range 4 {
			sending.Go(func() { book.spendMany(t, i.Proxy, worker, 1<<30, 40, stop) })
		}
		sending.Go(func() { watched[n] = book.watch(stop) })
		<-time.After(load)
		least += book.total()
		for range 2 { // The second change of the journal has all of the units so far, on a slow machine too.
			written := meteringOf(t, i).Written
			eventually(t, "the journal grows", func() bool { return meteringOf(t, i).Written > written })
		}
		<-time.After(late)
		killed[n] = time.Now()
		_ = i.command.Process.Kill()
		<-i.ended
		close(stop)
		sending.Wait()
		most += book.total() + 3*int64(book.broken)
	}
	bills.away.Store(true)
	i := launch(t, path)
	bills.away.Store(false)
	eventually(t, "the journal is empty", func() bool { return pendingOf(t, i) == 0 })
	i.stop()
	var got int64
	for _, u := range bills.sums() {
		got += u.Admitted + u.Refused
	}
	if got < least || got > most || least == 0 {
		t.Errorf("the records have %d units, want %d to %d", got, least, most)
	}
	if len(bills.changed) > 0 {
		t.Errorf("ids came with other contents: %v", bills.changed)
	}
	epochs := map[string]int64{}
	for id, e := range bills.events {
		epochs[strings.Split(id, "/")[1]] += e.Admitted + e.Refused
	}
	if len(epochs) != kills {
		t.Fatalf("the epochs are %v, want %d", epochs, kills)
	}
	for n, epoch := range slices.Sorted(maps.Keys(epochs)) { // An epoch begins with its time.
		missing = max(missing, lost(watched[n], killed[n], epochs[epoch]))
	}
	t.Logf("%d kills: the records have %d units, at least %d and at most %d; at most %v before a kill are missing", kills, got, least, most,
		missing)
	return missing
}

// total is the sum of all units.
func (l *usageBook) total() (n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, u := range l.decided {
		n += u.Admitted + u.Refused
	}
	return n
}
