package redis_test

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/breaker"
	"github.com/headgate/headgate/internal/store/resp"
	"github.com/headgate/headgate/internal/testkit/network"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/redis"
)

// forgeries are replies that a script never gives. The client library panics on the first five, on
// the fifth only with a cluster. For the next three, the library allocates the announced lengths.
var forgeries = []string{
	"$-7\r\n", "*-5\r\n", "$9223372036854775800\r\n", "+OK\r\n+OK\r\n", "-ERR MOVED\r\n",
	"*2147483647\r\n", "%1073741823\r\n", "$536870912\r\n",
	"*1\r\n*1\r\n*1\r\n*1\r\n$-7\r\n", "%-3\r\n", "$?\r\n;9223372036854775800\r\n", "|1\r\n+a\r\n+b\r\n+OK\r\n",
	">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n", ">2\r\n+invalidate\r\n_\r\n", "+OK\n", ":\r\n", "x\r\n", "\r\n",
}

// garbled are well-formed replies that are not an answer of the script.
var garbled = []string{"+OK\r\n", ":1\r\n", "_\r\n", "$-1\r\n", "#t\r\n", "$0\r\n\r\n", "$16\r\n0123456789abcdef\r\n", "-MOVED 1 127.0.0.1:1\r\n"}

// say writes a reply. If the reply announces a string of 512 MiB, say also writes the string, until
// the client stops reading.
func say(reply string) func(io.Writer) error {
	return func(w io.Writer) error {
		if _, err := io.WriteString(w, reply); err != nil || !strings.HasPrefix(reply, "$5368") {
			return err
		}
		bytes := make([]byte, 64<<10)
		for range (512 << 20) / len(bytes) {
			if _, err := w.Write(bytes); err != nil {
				return err
			}
		}
		return nil
	}
}

// TestForgedReplies: a replaced server, or a device in between, sends replies that Redis never
// sends. The caller gets an error, memory stays small, and the breaker opens. The next decisions
// are right when the real server answers again.
func TestForgedReplies(t *testing.T) {
	forger := network.NewForger(t, testserver.Start(t).Addr)
	store := open(t, redis.Config{
		Client:  rueidis.ClientOption{InitAddress: []string{forger.Addr}},
		Breaker: breaker.Config{Failures: 1, Probe: time.Millisecond, MaxProbe: 5 * time.Millisecond},
	})
	id := prepare(t, store, headgate.Policy{Limit: headgate.Limit{Count: 1000, Per: time.Hour}})
	if _, err := take(store, id, "k", patience); err != nil {
		t.Fatal(err)
	}
	for i, reply := range append(forgeries, garbled...) {
		made, opened := forger.Made(), store.Stats().Nodes[0].Opened
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		forger.Replace("EVALSHA", say(reply))
		_, err := take(store, id, "k", patience)
		runtime.ReadMemStats(&after)
		if err == nil || forger.Made() != made+1 {
			t.Errorf("reply %q: got error %v and %d replaced replies, want an error and 1", reply, err, forger.Made()-made)
		}
		if i < len(forgeries) && !errors.Is(err, resp.ErrReply) {
			t.Errorf("reply %q: got error %v, want resp.ErrReply", reply, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
			t.Errorf("reply %q: %d MiB were allocated, want at most 4", reply, n>>20)
		}
		if !strings.HasPrefix(reply, "-") && store.Stats().Nodes[0].Opened == opened {
			t.Errorf("reply %q: the breaker did not open", reply)
		}
		until(t, "a decision", func() bool { _, err := take(store, id, "k", patience); return err == nil })
	}
	d, err := take(store, id, "another", patience)
	if err != nil || d.Verdict != headgate.Allow || d.Remaining != 999 {
		t.Errorf("after the forged replies: got %+v and error %v, want Allow with 999 remaining", d, err)
	}
}
