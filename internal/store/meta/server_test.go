package meta_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/store/meta"
	"github.com/headgate/headgate/internal/testkit/leak"
	"github.com/headgate/headgate/internal/testkit/memcached"
)

// These tests use a real server.

func TestMain(m *testing.M) { leak.Main(m) }

// open gives a client that is closed with the test.
func open(tb testing.TB, config meta.Config) *meta.Client {
	tb.Helper()
	c, err := meta.New(config)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.Close() })
	return c
}

// do sends one request, and fails the test without an answer.
func do(tb testing.TB, c *meta.Client, r meta.Request) meta.Response {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 10*time.Second)
	defer cancel()
	var response [1]meta.Response
	if err := c.Do(ctx, []meta.Request{r}, response[:]); err != nil {
		tb.Fatalf("%+v: %v", r, err)
	}
	return response[0]
}

// pause waits before the next poll, while the test runs.
func pause(tb testing.TB, d time.Duration) {
	tb.Helper()
	select {
	case <-time.After(d):
	case <-tb.Context().Done():
	}
}

// TestValueHasItsCAS: two reads with one CAS give one value, while others count. Otherwise a Set with that CAS could
// lose counts.
func TestValueHasItsCAS(t *testing.T) {
	addr := memcached.Start(t).Addr
	counts, reads := open(t, meta.Config{Addr: addr}), open(t, meta.Config{Addr: addr})
	do(t, counts, meta.Request{Kind: meta.Set, Key: "n", Value: []byte("1000000")})
	var all sync.WaitGroup
	defer all.Wait()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	all.Go(func() {
		add := slices.Repeat([]meta.Request{{Kind: meta.Increment, Key: "n", Delta: 1}}, 20)
		for answers := make([]meta.Response, len(add)); ctx.Err() == nil; {
			if err := counts.Do(ctx, add, answers); err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
		}
	})
	get := slices.Repeat([]meta.Request{{Kind: meta.Get, Key: "n"}}, 50)
	answers := make([]meta.Response, len(get))
	var cas uint64
	var value string
	for range 4000 {
		if err := reads.Do(ctx, get, answers); err != nil {
			t.Fatal(err)
		}
		for _, a := range answers {
			if a.CAS == cas && string(a.Value) != value {
				t.Fatalf("%s and %s have the CAS %d", value, a.Value, cas)
			}
			cas, value = a.CAS, string(a.Value)
		}
	}
}

// TestStory: the answer to each kind of request while an item is created, changed and removed.
func TestStory(t *testing.T) {
	c := open(t, meta.Config{Addr: memcached.Start(t).Addr})
	var cas, stale uint64 // The item's CAS, and an older CAS.
	steps := []struct {
		name    string
		request meta.Request
		useCAS  *uint64
		status  meta.Status
		value   string
		number  uint64
	}{
		{name: "nothing is there", request: meta.Request{Kind: meta.Get}, status: meta.NotFound},
		{name: "nothing to count", request: meta.Request{Kind: meta.Increment, Delta: 1}, status: meta.NotFound},
		{name: "nothing to delete", request: meta.Request{Kind: meta.Delete}, status: meta.NotFound},
		{name: "nothing to compare", request: meta.Request{Kind: meta.Set, CAS: 12}, status: meta.NotFound},
		{name: "the first adds", request: meta.Request{Kind: meta.Add, Value: []byte("one"), TTL: time.Minute}, status: meta.OK},
		{name: "the second does not", request: meta.Request{Kind: meta.Add, Value: []byte("two")}, status: meta.Exists},
		{name: "it is the first's", request: meta.Request{Kind: meta.Get}, status: meta.OK, value: "one"},
		{name: "who knows it changes it", request: meta.Request{Kind: meta.Set, Value: []byte("\x00\r\nEN\r\n\xff")}, useCAS: &cas, status: meta.OK},
		{name: "who knew it does not", request: meta.Request{Kind: meta.Set, Value: []byte("late")}, useCAS: &stale, status: meta.Exists},
		{name: "any byte is kept", request: meta.Request{Kind: meta.Get}, status: meta.OK, value: "\x00\r\nEN\r\n\xff"},
		{name: "it is no number", request: meta.Request{Kind: meta.Increment, Delta: 1}, status: meta.Refused},
		{name: "who knew it does not delete it", request: meta.Request{Kind: meta.Delete}, useCAS: &stale, status: meta.Exists},
		{name: "who knows it does", request: meta.Request{Kind: meta.Delete}, useCAS: &cas, status: meta.OK},
		{name: "it is gone", request: meta.Request{Kind: meta.Get}, status: meta.NotFound},
		{name: "a number begins", request: meta.Request{Kind: meta.Increment, Create: true, Delta: 3, Initial: 40}, status: meta.OK, number: 40},
		{name: "it counts on", request: meta.Request{Kind: meta.Increment, Create: true, Delta: 2, Initial: 40}, status: meta.OK, number: 42},
		{name: "it counts down", request: meta.Request{Kind: meta.Decrement, Delta: 41}, status: meta.OK, number: 1},
		{name: "never below 0", request: meta.Request{Kind: meta.Decrement, Delta: math.MaxUint64}, status: meta.OK, number: 0},
		{name: "up to the last", request: meta.Request{Kind: meta.Increment, Delta: math.MaxUint64}, status: meta.OK, number: math.MaxUint64},
		{name: "an empty value", request: meta.Request{Kind: meta.Set}, status: meta.OK},
		{name: "is there", request: meta.Request{Kind: meta.Get}, status: meta.OK},
	}
	for _, s := range steps {
		s.request.Key = "story"
		if s.useCAS != nil {
			s.request.CAS = *s.useCAS
		}
		got := do(t, c, s.request)
		if got.Status != s.status || string(got.Value) != s.value || got.Number != s.number {
			t.Errorf("%s: %v %q %d, want %v %q %d", s.name, got.Status, got.Value, got.Number, s.status, s.value, s.number)
		}
		if (got.Status == meta.Refused) != (got.Message != "") {
			t.Errorf("%s: %v with message %q", s.name, got.Status, got.Message)
		}
		if got.CAS != 0 && got.CAS != cas {
			cas, stale = got.CAS, cas
		}
	}
}

// TestMany: the answers of one Do are in the order of its requests.
func TestMany(t *testing.T) {
	c := open(t, meta.Config{Addr: memcached.Start(t).Addr})
	requests := make([]meta.Request, meta.MaxRequests)
	responses := make([]meta.Response, len(requests))
	for i := range requests {
		requests[i] = meta.Request{Kind: meta.Set, Key: fmt.Sprint("k", i), Value: bytes.Repeat([]byte{byte(i)}, i)}
	}
	if err := c.Do(t.Context(), requests, responses); err != nil {
		t.Fatal(err)
	}
	for i := range requests {
		requests[i] = meta.Request{Kind: meta.Get, Key: fmt.Sprint("k", i+1)}
	}
	if err := c.Do(t.Context(), requests, responses); err != nil {
		t.Fatal(err)
	}
	for i, r := range responses[:len(responses)-1] {
		if r.Status != meta.OK || !bytes.Equal(r.Value, bytes.Repeat([]byte{byte(i + 1)}, i+1)) {
			t.Fatalf("request %d: %v, %d bytes", i, r.Status, len(r.Value))
		}
	}
	if last := responses[len(responses)-1]; last.Status != meta.NotFound || len(last.Value) != 0 {
		t.Errorf("the last: %v %q, want not found", last.Status, last.Value)
	}
}

// TestConcurrent: many callers increment one number. Each increment has one caller, and the sum is
// exact.
func TestConcurrent(t *testing.T) {
	const callers, each = 64, 200
	c := open(t, meta.Config{Addr: memcached.Start(t).Addr, Connections: 3})
	var group sync.WaitGroup
	seen := make([]atomic.Bool, callers*each+1)
	for range callers {
		group.Go(func() {
			r := []meta.Request{{Kind: meta.Increment, Key: "n", Delta: 1, Initial: 1, Create: true}}
			var a [1]meta.Response
			for range each {
				if err := c.Do(t.Context(), r, a[:]); err != nil || a[0].Number < 1 || a[0].Number > callers*each {
					t.Errorf("%+v %v", a[0], err)
					return
				}
				if seen[a[0].Number].Swap(true) {
					t.Errorf("%d was given twice", a[0].Number)
				}
			}
		})
	}
	group.Wait()
	if got := do(t, c, meta.Request{Kind: meta.Get, Key: "n"}); string(got.Value) != fmt.Sprint(callers*each) {
		t.Errorf("counted %q, want %d", got.Value, callers*each)
	}
}

// TestCompareAndSwap: several callers change one version of an item, and one of them succeeds.
func TestCompareAndSwap(t *testing.T) {
	const callers, each = 16, 50
	c := open(t, meta.Config{Addr: memcached.Start(t).Addr})
	do(t, c, meta.Request{Kind: meta.Set, Key: "n", Value: []byte{0, 0}})
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for done := 0; done < each; {
				old := do(t, c, meta.Request{Kind: meta.Get, Key: "n"})
				n := int(old.Value[0])<<8 + int(old.Value[1]) + 1
				if do(t, c, meta.Request{Kind: meta.Set, Key: "n", Value: []byte{byte(n >> 8), byte(n)}, CAS: old.CAS}).Status == meta.OK {
					done++
				}
			}
		})
	}
	group.Wait()
	v := do(t, c, meta.Request{Kind: meta.Get, Key: "n"}).Value
	if n := int(v[0])<<8 + int(v[1]); n != callers*each {
		t.Errorf("%d changes are left of %d", n, callers*each)
	}
}

// TestKeys: bytes that could end a key, and so begin a command, are never sent. All other bytes are
// allowed.
func TestKeys(t *testing.T) {
	c := open(t, meta.Config{Addr: memcached.Start(t).Addr})
	bad := []string{
		"", " ", "a b", "a\r\nflush_all\r\n", "a\nb", "a\tb", "a\x00b", "a\x7fb", strings.Repeat("k", 251),
	}
	for _, key := range bad {
		err := c.Do(t.Context(), []meta.Request{{Kind: meta.Get, Key: "fine"}, {Kind: meta.Get, Key: key}}, make([]meta.Response, 2))
		if !errors.Is(err, meta.ErrKey) || meta.Sent(err) {
			t.Errorf("key %q: %v, want ErrKey", key, err)
		}
	}
	good := []string{strings.Repeat("k", 250), "{}*?'\"\\", "\xff\xfe\x80", "ключ", "O1", "v", "0", "\u0085"}
	for i, key := range good {
		do(t, c, meta.Request{Kind: meta.Set, Key: key, Value: []byte{byte(i)}})
	}
	for i, key := range good {
		if got := do(t, c, meta.Request{Kind: meta.Get, Key: key}); len(got.Value) != 1 || got.Value[0] != byte(i) {
			t.Errorf("key %q: %q, want %d", key, got.Value, i)
		}
	}
	found, err := c.Stats(t.Context())
	if err != nil || found["cmd_get"] != fmt.Sprint(len(good)) {
		t.Errorf("the server saw %s gets, want %d (%v)", found["cmd_get"], len(good), err)
	}
}

// TestBounds: an oversized or invalid request is refused before anything is sent.
func TestBounds(t *testing.T) {
	c := open(t, meta.Config{Addr: "127.0.0.1:1", MaxValue: 100}) // Nothing listens at this address: a sent request would fail in another way.
	one := make([]meta.Response, 1)
	cases := []struct {
		name     string
		requests []meta.Request
		want     error
	}{
		{"value", []meta.Request{{Kind: meta.Set, Key: "k", Value: make([]byte, 101)}}, meta.ErrValue},
		{"time to live", []meta.Request{{Kind: meta.Set, Key: "k", TTL: -1}}, meta.ErrTTL},
		{"kind", []meta.Request{{Kind: meta.Delete + 1, Key: "k"}}, meta.ErrKind},
		{"too few responses", make([]meta.Request, 2), meta.ErrRequests},
		{"too many requests", make([]meta.Request, meta.MaxRequests+1), meta.ErrRequests},
	}
	for _, k := range cases {
		if err := c.Do(t.Context(), k.requests, one); !errors.Is(err, k.want) {
			t.Errorf("%s: %v, want %v", k.name, err, k.want)
		}
	}
	if err := c.Do(t.Context(), nil, nil); err != nil {
		t.Errorf("to ask nothing: %v", err)
	}
}

// TestLargeValues: a value of nearly 1 MiB is stored. The server refuses a larger one and removes
// the old value, and the connection continues.
func TestLargeValues(t *testing.T) {
	s := memcached.Start(t)
	c := open(t, meta.Config{Addr: s.Addr, Connections: 1})
	large := bytes.Repeat([]byte("0123456789\r\n"), 1_048_000/12)
	do(t, c, meta.Request{Kind: meta.Set, Key: "k", Value: large})
	if got := do(t, c, meta.Request{Kind: meta.Get, Key: "k"}); !bytes.Equal(got.Value, large) {
		t.Errorf("%d bytes came back of %d", len(got.Value), len(large))
	}
	if got := do(t, c, meta.Request{Kind: meta.Set, Key: "k", Value: make([]byte, 1<<20)}); got.Status != meta.Refused {
		t.Errorf("a value above the server's item size: %v", got.Status)
	}
	if got := do(t, c, meta.Request{Kind: meta.Get, Key: "k"}); got.Status != meta.NotFound {
		t.Errorf("after a refused Set: %v, want not found", got.Status)
	}
	if found, err := c.Stats(t.Context()); err != nil || found["total_connections"] > "4" {
		t.Errorf("%s connections were made, %v", found["total_connections"], err)
	}
}

// TestTTL: an item lives as long as requested, and then expires.
func TestTTL(t *testing.T) {
	c := open(t, meta.Config{Addr: memcached.Start(t).Addr})
	began := time.Now()
	do(t, c, meta.Request{Kind: meta.Set, Key: "k", TTL: time.Second})
	do(t, c, meta.Request{Kind: meta.Increment, Key: "n", TTL: time.Second, Create: true})
	do(t, c, meta.Request{Kind: meta.Set, Key: "long", TTL: 2 * meta.MaxTTL})
	do(t, c, meta.Request{Kind: meta.Set, Key: "ever"})
	for _, key := range []string{"k", "n"} {
		for do(t, c, meta.Request{Kind: meta.Get, Key: key}).Status == meta.OK {
			if time.Since(began) > 10*time.Second {
				t.Fatalf("%s lives for ever", key)
			}
			pause(t, 5*time.Millisecond)
		}
		if age := time.Since(began); age < time.Second {
			t.Errorf("%s went after %v", key, age)
		}
	}
	for _, key := range []string{"long", "ever"} {
		if do(t, c, meta.Request{Kind: meta.Get, Key: key}).Status != meta.OK {
			t.Errorf("%s is gone", key)
		}
	}
}

// TestPingAndStats: the server answers Ping, and gives its statistics.
func TestPingAndStats(t *testing.T) {
	c := open(t, meta.Config{Addr: memcached.Start(t).Addr})
	if err := c.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	found, err := c.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"time", "version", "evictions", "limit_maxbytes"} {
		if found[name] == "" {
			t.Errorf("no %s among %d statistics", name, len(found))
		}
	}
}
