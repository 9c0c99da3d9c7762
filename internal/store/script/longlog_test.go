package script_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/storetest"
)

// TestGreatRefusalsReadAListOnce: a client that names great costs makes each refusal
// look for a time at the far end of a long log. A batch of them reads its list once,
// and so holds the server for a millisecond or two, and not for half a second.
func TestGreatRefusalsReadAListOnce(t *testing.T) {
	client := newClient(t, testserver.Start(t).Addr)
	clock := storetest.NewClock()
	s := newStore(t, client, 1, clock.Now)
	const count = 3000
	id, err := s.Prepare(headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: count, Per: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	var first, last headgate.Instant
	for i := range count {
		clock.Advance(time.Millisecond)
		last = apply(t, s, headgate.Op{Key: "k", Policy: id, Cost: 1})[0].At
		if i == 0 {
			first = last
		}
	}
	var ops []headgate.Op
	for i := range 100 {
		ops = append(ops, headgate.Op{Key: "k", Policy: id, Cost: count - int64(i), Group: uint8(i % 2)})
	}
	before := lookedUp(t, client)
	for i, d := range apply(t, s, ops...) {
		want := last.Add(time.Hour - time.Duration(i)*time.Millisecond).Sub(clock.Now())
		if d.Reason != headgate.OverLimit || d.RetryAfter != want {
			t.Fatalf("a cost of %d: %+v, want a RetryAfter of %v", ops[i].Cost, d, want)
		}
	}
	if got := apply(t, s, headgate.Op{Key: "k", Policy: id, Cost: 1})[0]; got.RetryAfter != first.Add(time.Hour).Sub(clock.Now()) {
		t.Errorf("a cost of 1: %+v", got)
	}
	// Each looks at the chunk that it ends in, besides.
	if n := lookedUp(t, client) - before; n == 0 || n > count/60+len(ops) {
		t.Errorf("100 refusals took %d looks at a list of about %d chunks", n, count/63)
	}
}

// lookedUp gives how many LINDEX the server has run.
func lookedUp(t *testing.T, client rueidis.Client) int {
	t.Helper()
	info, err := client.Do(t.Context(), client.B().Info().Section("commandstats").Build()).ToString()
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(info, "cmdstat_lindex:calls=")
	if !found {
		return 0
	}
	digits, _, _ := strings.Cut(after, ",")
	n, err := strconv.Atoi(digits)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
