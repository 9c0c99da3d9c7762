package acceptance

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/client"
	"github.com/headgate/headgate/config/open"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
)

const (
	// fewUnits is the small limit of all servers together for each of fewKeys keys, and localUnits the part of one client
	// without a server.
	fewUnits, localUnits, fewKeys = 50, 20, 2
	// fewEvery is how many calls of a caller have one with the small limit among them.
	fewEvery = 8
)

// failureServer is the configuration of the servers of a clientFailure.
const failureServer = `version: 1
store: redis://%s
store_timeout: 20s
fallback: error
deny_cache: 0s
server: {grpc: "127.0.0.1:0", http: off}
`

// failureRules counts each path under a key of its own, so that one number in Redis is the number of units taken.
func failureRules(few int) string {
	var text strings.Builder
	text.WriteString("rules:\n")
	for path, count := range map[string]int{"many": uncounted, "unread": uncounted, "few": few} {
		fmt.Fprintf(&text, "- {name: %s, match: {path: /%s/*}, key: [path], algorithm: fixed_window, limits: [%d/365d]}\n", path, path, count)
	}
	return text.String()
}

// manyPath is the path of a caller: each has a key of its own.
func manyPath(caller int) string { return fmt.Sprint("/many/", caller) }

// fewPath is a path with the small limit, which callers share.
func fewPath(key int) string { return fmt.Sprint("/few/", key) }

// failureClient is a client with a fallback in its memory, and what its callers got.
type failureClient struct {
	*client.Client

	store                      io.Closer // of the fallback
	many, refused, local, left atomic.Int64
	few, localFew              [fewKeys]atomic.Int64 // by key
}

// newFailureClient connects to servers.
func newFailureClient(t *testing.T, servers []string, timeout time.Duration) *failureClient {
	t.Helper()
	c, err := config.Parse("headgate.yaml", []byte("version: 1\n"+failureRules(localUnits)))
	if err != nil {
		t.Fatal(err)
	}
	store, err := open.Store(c, open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	described, err := open.GuardConfig(c, store)
	if err != nil {
		t.Fatal(err)
	}
	local, err := guard.New(described)
	if err != nil {
		t.Fatal(err)
	}
	k, err := client.New(client.Config{Servers: servers, Timeout: timeout, Fallback: guard.FallbackLocal, Local: local})
	if err != nil {
		t.Fatal(err)
	}
	f := &failureClient{Client: k, store: store}
	t.Cleanup(f.close)
	return f
}

func (k *failureClient) close() {
	_ = k.Close()
	_ = k.store.Close()
}

// ask makes a call for a path with a key of the small limit, or of another limit if few is negative. It counts what
// its caller gets, and reports whether that is an answer of a server.
func (k *failureClient) ask(ctx context.Context, path string, few int) (bool, error) {
	a, err := k.Decide(ctx, &client.Request{Path: path})
	count := &k.many
	switch {
	case err != nil && ctx.Err() != nil:
		count = &k.left
	case err != nil:
		return false, err
	case a.Local && few >= 0 && a.Verdict == headgate.Allow:
		count = &k.localFew[few]
	case a.Local:
		count = &k.local
	case few >= 0 && a.Verdict == headgate.Allow:
		count = &k.few[few]
	case few >= 0:
		count = &k.refused
	case a.Verdict != headgate.Allow:
		return false, fmt.Errorf("a call within the limit gets %+v", a)
	}
	count.Add(1)
	return err == nil && !a.Local, nil
}

// failureCallers are callers who share some clients.
type failureCallers struct {
	decisions      int64 // that servers give to callers before the end
	count, clients int
	timeout        time.Duration
	leaves         time.Duration // half of the calls end after a random time up to this; 0 is never
}

// failureRun is a run of failureCallers.
type failureRun struct {
	failureCallers

	t       *testing.T
	servers []string
	now     []atomic.Pointer[failureClient]
	all     []*failureClient // with those that were replaced
	running sync.WaitGroup
	failed  atomic.Bool    // What shall fail has failed: callers may end.
	got     []atomic.Int64 // units that each caller got from servers under its own key

	calls, answered, longest atomic.Int64 // longest is in nanoseconds
}

// begin starts the callers.
func (f failureCallers) begin(t *testing.T, servers []string) *failureRun {
	t.Helper()
	r := &failureRun{
		failureCallers: f, t: t, servers: servers, now: make([]atomic.Pointer[failureClient], f.clients),
		got: make([]atomic.Int64, f.count),
	}
	for i := range r.now {
		r.replace(i)
	}
	for w := range f.count {
		r.running.Go(func() {
			for n := 0; (r.answered.Load() < f.decisions || !r.failed.Load()) && !t.Failed(); n++ {
				r.call(r.now[w%f.clients].Load(), w, n)
			}
		})
	}
	return r
}

// replace gives callers another client, and returns the one that they had.
func (r *failureRun) replace(i int) (former *failureClient) {
	r.t.Helper()
	k := newFailureClient(r.t, r.servers, r.timeout)
	r.all = append(r.all, k)
	return r.now[i].Swap(k)
}

// call makes call n of a caller.
func (r *failureRun) call(k *failureClient, caller, n int) {
	ctx, path, few := r.t.Context(), manyPath(caller), -1
	// The callers of one client call in step. Were they to take their turns together, a whole message would have the
	// small limit only.
	if (n+caller/r.clients)%fewEvery == 0 {
		few = caller % fewKeys
		path = fewPath(few)
	}
	if r.leaves > 0 && n%2 == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 1+rand.N(r.leaves))
		defer cancel()
	}
	began := time.Now()
	answered, err := k.ask(ctx, path, few)
	elapsed := int64(time.Since(began))
	for longest := r.longest.Load(); elapsed > longest && !r.longest.CompareAndSwap(longest, elapsed); {
		longest = r.longest.Load()
	}
	r.calls.Add(1)
	if answered {
		r.answered.Add(1)
	}
	if answered && few < 0 {
		r.got[caller].Add(1)
	}
	if err != nil {
		r.t.Error(err)
	}
}

// await waits until servers have given a part of the decisions.
func (r *failureRun) await(part float64) {
	r.t.Helper()
	for want := int64(part * float64(r.decisions)); r.answered.Load() < want && !r.t.Failed(); {
		<-time.After(time.Millisecond)
	}
}

// end waits for the last decisions.
func (r *failureRun) end() {
	r.failed.Store(true)
	r.running.Wait()
}

// paths are those of the callers.
func (r *failureRun) paths() (all []string) {
	for caller := range r.got {
		all = append(all, manyPath(caller))
	}
	return all
}

// sum adds up what the callers of all clients got.
func (r *failureRun) sum() (all failureSum) {
	for _, k := range r.all {
		all.many += k.many.Load()
		all.refused += k.refused.Load()
		all.local += k.local.Load()
		all.left += k.left.Load()
		for key := range fewKeys {
			all.few[key] += k.few[key].Load()
			all.localFew += k.localFew[key].Load()
		}
		s := k.Stats()
		all.decided += int64(s.Decided)
		all.returned += int64(s.Returned)
		all.switches += int64(s.Switches)
	}
	return all
}

// failureSum is what callers got from servers, for both limits, and from the fallback; how many left; and what
// the clients counted.
type failureSum struct {
	many, refused, local, localFew, left int64
	few                                  [fewKeys]int64 // by key
	decided, returned, switches          int64
}

// answers is the number of answers of servers.
func (s *failureSum) answers() int64 {
	all := s.many + s.refused
	for _, n := range s.few {
		all += n
	}
	return all
}
