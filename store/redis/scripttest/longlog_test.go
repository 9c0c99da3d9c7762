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

// TestGreatRefusalsReadAListOnce: to refuse a request with a high cost, the script searches a long
// log up to its far end. A batch of such requests reads the list only once. So the batch takes the
// server one or two milliseconds, not half a second.
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
	before := lindexCalls(t, client)
	for i, d := range apply(t, s, ops...) {
		want := last.Add(time.Hour - time.Duration(i)*time.Millisecond).Sub(clock.Now())
		if d.Reason != headgate.OverLimit || d.RetryAfter != want {
			t.Fatalf("cost %d: got %+v, want OverLimit with a RetryAfter of %v", ops[i].Cost, d, want)
		}
	}
	if got := apply(t, s, headgate.Op{Key: "k", Policy: id, Cost: 1})[0]; got.RetryAfter != first.Add(time.Hour).Sub(clock.Now()) {
		t.Errorf("cost 1: got %+v, want the RetryAfter at which the first entry expires", got)
	}
	// Each request reads the chunk at the end of its search once more.
	if n := lindexCalls(t, client) - before; n == 0 || n > count/60+len(ops) {
		t.Errorf("100 refusals read %d chunks, want each of about %d chunks once, plus one for each refusal", n, count/63)
	}
}

// lindexCalls gives the number of LINDEX commands that the server has run.
func lindexCalls(t *testing.T, client rueidis.Client) int {
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
