package fairshare

import (
	"testing"
	"unsafe"

	"github.com/headgate/headgate"
)

// TestReturn checks that units returned in their cycle can be taken again, and count neither
// as admitted nor as demand. A later return changes nothing.
func TestReturn(t *testing.T) {
	for _, reclaim := range Reclaims() {
		config := plain(func(c *Config) { c.Reclaim, c.Weights = reclaim, pinned("A B") })
		for _, c := range []struct {
			says   string
			at     float64 // in cycles
			reload bool
			want   Share // A's share in the cycle in which A returns 20 units
			free   int64 // units that A can take then
		}{
			{"in its cycle", 0, false, Share{Seen: 0, Admitted: 0, AdmittedTotal: 0}, 20},
			{"in the next cycle", 1, false, Share{Demand: 20, AdmittedTotal: 20}, 20},
			{"many cycles later", 9, false, Share{AdmittedTotal: 20}, 20},
			{"in its cycle, after a Reload: no effect", 0, true, Share{Seen: 20, Admitted: 20, AdmittedTotal: 20}, 0},
		} {
			l := storyOf(t, config)
			now := storyStart.Add(cycles(c.at))
			d, receipt := l.Take(storyStart, Request{Client: "A", Cost: 20})
			if d.Verdict != headgate.Allow || d.Remaining != 0 {
				t.Fatalf("%+v", d)
			}
			if c.reload {
				if err := l.Reload(storyStart, config); err != nil {
					t.Fatal(err)
				}
			}
			l.Shares(now)
			l.Return(receipt)
			l.Return(Receipt{})
			got := l.Shares(now).Clients[0]
			if got.Seen != c.want.Seen || got.Admitted != c.want.Admitted || got.AdmittedTotal != c.want.AdmittedTotal ||
				got.AdmittedCounter < got.AdmittedTotal || got.Demand != c.want.Demand {
				t.Errorf("%v, %s: %+v, want %+v", reclaim, c.says, got, c.want)
			}
			size := got.Size
			if reclaim == AtOnce {
				size = max(size, got.Default)
			}
			if free := size - got.Admitted; c.at < 1 && free != c.free {
				t.Errorf("%v, %s: %d units are free, want %d", reclaim, c.says, free, c.free)
			}
			d, _ = l.Take(now, Request{Client: "A", Cost: 20})
			if b, fault := ledgerOf(l); b.sum() != 40 || fault != "" || (d.Verdict == headgate.Allow) != (c.free >= 20) {
				t.Errorf("%v, %s: the next decision is %+v and the limiter has %+v %s", reclaim, c.says, d, b, fault)
			}
		}
	}
}

// attempt is one line of a test table for retries: an attempt with an ID, and the client's
// demand after it.
type attempt struct {
	says   string
	at     float64 // in cycles
	client string
	id     string
	cost   int64
	seen   int64
}

// TestCountOnce checks that attempts at one request count once in a cycle's demand.
func TestCountOnce(t *testing.T) {
	story := []attempt{
		{"a request", 0, "A", "r1", 3, 3},
		{"another", 0, "A", "r2", 3, 6},
		{"the first request again", 0.1, "A", "r1", 3, 6},
		{"the first request several times", 0.2, "A", "r1", 3, 6},
		{"a request without an ID", 0.2, "A", "", 1, 7},
		{"each request without an ID counts", 0.2, "A", "", 1, 8},
		{"IDs of A and B are separate", 0.3, "B", "r1", 1, 1},
		{"refused ones", 0.3, "B", "r9", 35, 36},
		{"refused attempts count once too", 0.4, "B", "r9", 35, 36},
		{"a cost above the capacity counts as the capacity", 0.4, "B", "huge", 99, 76},
		{"once", 0.4, "B", "huge", 99, 76},
		{"the request counts again in the next cycle", 1, "A", "r1", 3, 3},
		{"once", 1.5, "A", "r1", 3, 3},
	}
	for _, once := range []bool{true, false} {
		l := storyOf(t, plain(func(c *Config) { c.CountOnce, c.Weights = once, pinned("A B") }))
		total := map[string]int64{}
		for _, e := range story {
			if e.at == 1 {
				clear(total)
			}
			now := storyStart.Add(cycles(e.at))
			l.Take(now, Request{Client: e.client, ID: e.id, Cost: e.cost})
			total[e.client] += min(e.cost, 40)
			want := e.seen
			if !once {
				want = total[e.client]
			}
			for _, c := range l.Shares(now).Clients {
				if c.Client == e.client && c.Seen != want {
					t.Errorf("CountOnce %t, %s: the demand of %s is %d, want %d", once, e.says, c.Client, c.Seen, want)
				}
			}
		}
	}
}

// TestCountOnceAfterReturn checks that a retry counts if the units of the earlier attempt were
// returned. Otherwise a client with many requests refused by rules would appear idle.
func TestCountOnceAfterReturn(t *testing.T) {
	l := storyOf(t, plain(func(c *Config) { c.CountOnce = true }))
	for range 5 {
		_, receipt := l.Take(storyStart, Request{Client: "A", ID: "r1"})
		l.Return(receipt) // A rule refused the request.
	}
	for _, id := range []string{"r1", "r2", "r3"} {
		l.Take(storyStart, Request{Client: "A", ID: id})
	}
	if a := l.Shares(storyStart).Clients[0]; a.Seen != 3 || a.Admitted != 3 {
		t.Errorf("3 requests are admitted, but Seen is %d: %+v", a.Seen, a)
	}
	_, again := l.Take(storyStart, Request{Client: "A", ID: "r3"})
	l.Return(again) // The first attempt still counts.
	if a := l.Shares(storyStart).Clients[0]; a.Seen != 3 || a.Admitted != 3 {
		t.Errorf("a retry is returned, and Seen is %d, want 3: %+v", a.Seen, a)
	}
}

// TestNamesAreCopied checks that the limiter keeps no reference to the caller's string.
// Callers overwrite its memory with the next client's name.
func TestNamesAreCopied(t *testing.T) {
	l := storyOf(t, plain(nil))
	buffer := []byte("client-1")
	name := unsafe.String(unsafe.SliceData(buffer), len(buffer)) // Package guard does the same.
	l.Take(storyStart, Request{Client: name})
	copy(buffer, "client-2")
	l.Take(storyStart, Request{Client: name})
	copy(buffer, "????????")
	if got := sizesOf(l.Shares(storyStart)); got != "client-1=20 client-2=20" {
		t.Errorf("client-1 and client-2 sent requests, but the clients with shares are %s", got)
	}
}
