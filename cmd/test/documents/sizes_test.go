package documents

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
)

// size is a row of the page: the bytes of one key of a policy in Redis after some requests.
type size struct {
	what     string
	policy   headgate.Policy
	requests int
}

func sizes() []size {
	policy := func(a headgate.Algorithm, count int64, more headgate.Policy) headgate.Policy {
		more.Algorithm, more.Limit.Count, more.Limit.Per = a, count, 24*time.Hour
		return more
	}
	log := func(requests int) size {
		return size{fmt.Sprintf("`sliding_log` that holds %s", thousands(int64(requests))), policy(headgate.SlidingLog, 5_000, headgate.Policy{}), requests}
	}
	window := func(n int) size {
		return size{fmt.Sprintf("`sliding_window` of %d sub-windows", n), policy(headgate.SlidingWindow, 1_000, headgate.Policy{SubWindows: n}), 20}
	}
	return []size{
		{"`token_bucket`, whole interval", policy(headgate.TokenBucket, 1_000, headgate.Policy{}), 1},
		{"`token_bucket`, any other", policy(headgate.TokenBucket, 7_000_000, headgate.Policy{}), 1},
		{"`leaky_bucket`", policy(headgate.LeakyBucket, 1_000, headgate.Policy{}), 1},
		{"`fixed_window`", policy(headgate.FixedWindow, 1_000, headgate.Policy{}), 20},
		window(4), window(10), window(60),
		log(10), log(100), log(1_000), log(5_000),
		{"a ban", policy(headgate.Ban, 1_000, headgate.Policy{BanFor: time.Hour}), 20},
		{"a receipt that was returned", policy(headgate.TokenBucket, 1_000, headgate.Policy{}), -1},
	}
}

// TestSizes compares the page's bytes for each kind of state with Redis's MEMORY USAGE.
func TestSizes(t *testing.T) {
	server := testserver.Start(t)
	store := openRedis(t, single(server), "", "")
	rows := table(t, "sizes")
	if len(rows) != len(sizes()) {
		t.Errorf("the page has %d sizes, want %d", len(rows), len(sizes()))
	}
	for i, s := range sizes() {
		server.CLI("FLUSHALL")
		bytes := s.measure(t, server, store)
		want := fmt.Sprintf("| %s | %s |", s.what, thousands(bytes))
		if i >= len(rows) {
			t.Error(want)
			continue
		}
		row := cells(rows[i])
		documented, err := strconv.ParseInt(strings.ReplaceAll(row[1], ",", ""), 10, 64)
		if err != nil || row[0] != s.what || bytes < documented*9/10 || bytes > documented*11/10 {
			t.Errorf("the page says %q (%v), the measured size is %s", rows[i], err, want)
		}
	}
}

// measure makes the requests and returns the sum of the memory of the server's keys.
func (s size) measure(t *testing.T, server *testserver.Server, store *redis.Store) int64 {
	t.Helper()
	if s.requests < 0 {
		run(t, store, job{"return", returned})
	}
	// The requests are sequential: two entries of a log with the same time would become one entry.
	for range s.requests {
		if _, err := decide(t, store, "k", 1, s.policy); err != nil {
			t.Fatal(err)
		}
	}
	sum := int64(0)
	for name := range strings.FieldsSeq(server.CLI("KEYS", "*")) {
		if s.requests < 0 && !strings.Contains(name, ":r") {
			continue
		}
		usage, err := server.Do("MEMORY", "USAGE", name, "SAMPLES", "0")
		bytes, ok := usage.(int64)
		if err != nil || !ok {
			t.Fatalf("MEMORY USAGE %s: %v %v", name, usage, err)
		}
		sum += bytes
	}
	return sum
}

// TestSizeWithTables checks the page's total memory of a bucket, by Redis's used_memory. It
// includes the entries of the server's hash tables, which MEMORY USAGE does not count.
func TestSizeWithTables(t *testing.T) {
	const keys = 50_000
	server := testserver.Start(t)
	store := openRedis(t, single(server), "", "")
	id, err := store.Prepare(limited(headgate.TokenBucket))
	if err != nil {
		t.Fatal(err)
	}
	run(t, store, jobs()[0])
	before := usedMemory(t, server)
	ops, decisions := make([]headgate.Op, 250), make([]headgate.Decision, 250)
	for n := 0; n < keys; n += len(ops) {
		for i := range ops {
			ops[i] = headgate.Op{Key: fmt.Sprint("client ", n+i), Policy: id, Group: uint8(i), Cost: 1}
		}
		if err := store.Apply(t.Context(), ops, decisions); err != nil {
			t.Fatal(err)
		}
	}
	each := (usedMemory(t, server) - before) / keys
	row := cells(table(t, "size with tables")[0])
	documented, err := strconv.ParseInt(row[1], 10, 64)
	t.Logf("%d bytes a key", each)
	if err != nil || each < documented*85/100 || each > documented*115/100 {
		t.Errorf("the page says %q (%v), the measured size is %d bytes per key", row, err, each)
	}
}

func usedMemory(t *testing.T, server *testserver.Server) int64 {
	t.Helper()
	for line := range strings.Lines(server.CLI("INFO", "memory")) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "used_memory:"); ok {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("INFO memory has no used_memory")
	return 0
}
