package memcached_test

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	testserver "github.com/headgate/headgate/internal/testkit/memcached"
	"github.com/headgate/headgate/store/memcached"
)

// TestNothingOfAKeyOnTheWire: the server gets only digests of the clients' keys.
func TestNothingOfAKeyOnTheWire(t *testing.T) {
	server, way := testserver.Start(t), &tap{}
	var mu sync.Mutex
	var wire bytes.Buffer
	way.on(func(written []byte) {
		mu.Lock()
		defer mu.Unlock()
		wire.Write(written)
	})
	for _, counters := range []bool{false, true} {
		store := newStore(t, memcached.Config{Servers: []string{server.Addr}, Dial: way.dial, Counters: counters})
		id := prepare(t, store, headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 10, Per: time.Hour}})
		for _, key := range []string{
			"", " ", "SECRET", "SECRET\r\nflush_all\r\n", "SECRET 0 0 1\r\nx\r\n", "{SECRET}", "\x00SECRET\xff\xfe",
			strings.Repeat("SECRET", 1<<16/6), "hg2:SECRET", "SECRET\nquit\n", "*", "?",
		} {
			op := headgate.Op{Key: key, Policy: id, Cost: 1}
			giveBack(t, store, apply(t, store, op)[0].Receipt)
			apply(t, store, op, headgate.Op{Key: key + "SECRET", Policy: id, Cost: 1})
			if err := store.Forget(t.Context(), []headgate.Op{op}); err != nil {
				t.Fatal(err)
			}
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if bytes.Contains(wire.Bytes(), []byte("SECRET")) {
		t.Error("a key went over the wire")
	}
	names := regexp.MustCompile(`(?m)^m[gsad] (\S+)`).FindAllSubmatch(wire.Bytes(), -1)
	ours := regexp.MustCompile(`^hg3:[A-Za-z0-9_-]{18}(:r[0-9a-z]+|:c[0-9a-z]+:[0-9a-z]+:[0-9a-z]+)?$`)
	for _, name := range names {
		if !ours.Match(name[1]) {
			t.Errorf("a server was asked for %q", name[1])
		}
	}
	if len(names) < 100 {
		t.Errorf("%d names were seen: the test does not look where they are", len(names))
	}
}

// TestRefusesTheLog: a policy that needs a log is refused, with an alternative.
func TestRefusesTheLog(t *testing.T) {
	store := newStore(t, memcached.Config{Servers: []string{"127.0.0.1:1"}})
	_, err := store.Prepare(headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 10, Per: time.Hour}})
	if err == nil || !strings.Contains(err.Error(), "sliding_window") {
		t.Errorf("sliding_log: %v", err)
	}
}
