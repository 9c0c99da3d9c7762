package resp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/internal/listen"
	"github.com/headgate/headgate/cmd/internal/testkit/guards"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/store/memory"
)

// epoch is the time of the tests' clock at 0 ms.
const epoch = headgate.Instant(1_700_000_000_000_000_000)

// clock is set by tests.
type clock struct{ ms atomic.Int64 }

func (c *clock) now() headgate.Instant {
	return epoch + headgate.Instant(time.Duration(c.ms.Load())*time.Millisecond)
}

func ruleOf(t *testing.T) guard.Rule {
	t.Helper()
	key, err := rule.ParsePart("ip")
	if err != nil {
		t.Fatal(err)
	}
	return guard.Rule{
		Rule:     rule.Rule{Name: "per-ip", Key: []rule.Part{key}},
		Policies: []headgate.Policy{{Limit: headgate.Limit{Count: 2, Per: time.Minute}}},
	}
}

// startServer serves until the test ends. The rules allow 2 a minute for each ip.
func startServer(t *testing.T, c *clock, idle time.Duration) (*Server, string) {
	t.Helper()
	store, err := memory.New(memory.Config{Clock: c.now})
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, store, Config{Idle: idle}, WriteTimeout)
}

// storePatience is longer than any answer of a store takes, on a busy machine.
const storePatience = 5 * time.Second

// startOn serves with a store until the test ends.
func startOn(t *testing.T, store headgate.Store, c Config, unread time.Duration) (*Server, string) {
	t.Helper()
	return startWithin(t, store, storePatience, c, unread)
}

// startWithin is startOn with a timeout of the store.
func startWithin(t *testing.T, store headgate.Store, timeout time.Duration, c Config, unread time.Duration) (*Server, string) {
	t.Helper()
	r := ruleOf(t)
	r.Fallback = guard.FallbackError
	var err error
	c.Guard, err = guard.New(guard.Config{Store: store, StoreTimeout: timeout, MaxSentLimits: 100, Rules: []guard.Rule{r}})
	if err != nil {
		t.Fatal(err)
	}
	return startWith(t, c, unread)
}

// startWith serves with a guard until the test ends.
func startWith(t *testing.T, c Config, unread time.Duration) (*Server, string) {
	t.Helper()
	l, err := listen.Open(t.Context(), listen.Config{Address: "127.0.0.1:0", WriteTimeout: unread})
	if err != nil {
		t.Fatal(err)
	}
	c.Version, c.Log = "1.2.3", slog.New(slog.DiscardHandler)
	s := New(c)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		_ = l.Close()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Second)
		defer cancel()
		_ = s.Drain(ctx) // A test may leave a connection that does not read.
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return s, l.Addr().String()
}

func dial(t *testing.T, at string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return c
}

// exchange sends a text, and expects an answer.
func exchange(t *testing.T, c net.Conn, send, want string) {
	t.Helper()
	if _, err := io.WriteString(c, send); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	n, err := io.ReadFull(c, got)
	if string(got[:n]) != want {
		t.Fatalf("to %.200q the answer is %q (%v), want %q", send, got[:n], err, want)
	}
}

func five(n ...int64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(n))
	for _, v := range n {
		fmt.Fprintf(&b, ":%d\r\n", v)
	}
	return b.String()
}

// TestCell has the example and the table of redis-cell.
func TestCell(t *testing.T) {
	c := new(clock)
	_, at := startServer(t, c, 0)
	conn := dial(t, at)
	exchange(t, conn, "CL.THROTTLE user123 15 30 60\r\n", five(0, 16, 15, -1, 2))
	for i, row := range []struct{ now, quantity, limited, remaining, retry, reset int64 }{
		{0, 6, 1, 5, -1, 0},
		{0, 1, 0, 4, -1, 1},
		{0, 1, 0, 3, -1, 2},
		{0, 1, 0, 2, -1, 3},
		{0, 1, 0, 1, -1, 4},
		{0, 1, 0, 0, -1, 5},
		{0, 1, 1, 0, 1, 5},
		{3000, 1, 0, 2, -1, 3},
		{3100, 1, 0, 1, -1, 4},
		{4000, 1, 0, 1, -1, 4},
		{8000, 1, 0, 4, -1, 1},
		{9500, 1, 0, 4, -1, 1},
		{9500, 0, 0, 4, -1, 1},
		{9500, 2, 0, 2, -1, 3},
		{9500, 5, 1, 2, 3, 3},
	} {
		c.ms.Store(row.now)
		t.Log(i)
		exchange(t, conn, fmt.Sprintf("CL.THROTTLE k 4 1 1 %d\r\n", row.quantity), five(row.limited, 5, row.remaining, row.retry, row.reset))
	}
}

// TestCrab: THROTTLE has another limit, another order, and rounds down; an idle key never has more than
// its limit.
func TestCrab(t *testing.T) {
	c := new(clock)
	_, at := startServer(t, c, 0)
	conn := dial(t, at)
	exchange(t, conn, "THROTTLE k 2 1 1\r\n", five(1, 2, 1, 1, 0))
	exchange(t, conn, "THROTTLE k 2 1 1\r\n", five(1, 2, 0, 2, 0))
	c.ms.Store(500)
	exchange(t, conn, "THROTTLE k 2 1 1\r\n", five(0, 2, 0, 1, 0))
	exchange(t, conn, "THROTTLE k 2 1 1 3\r\n", five(0, 2, 0, 1, -1))
	exchange(t, conn, "THROTTLE b 10 1 1 1\r\n", five(1, 10, 9, 1, 0))
	c.ms.Store(10_000)
	exchange(t, conn, "THROTTLE b 10 1 1 10\r\nTHROTTLE b 10 1 1\r\n", five(1, 10, 0, 10, 0)+five(0, 10, 0, 10, 1))
}

// TestChangedLimit: a key keeps what was used when its limit changes, also to another period.
func TestChangedLimit(t *testing.T) {
	_, at := startServer(t, new(clock), 0)
	conn := dial(t, at)
	exchange(t, conn, "CL.THROTTLE k 9 10 60 8\r\n", five(0, 10, 2, -1, 48))
	exchange(t, conn, "THROTTLE k 20 600 3600 0\r\n", five(1, 20, 12, 48, 0))
}

func TestFaults(t *testing.T) {
	_, at := startServer(t, new(clock), 0)
	for send, want := range map[string]string{
		"CL.THROTTLE k 4 1 1 -1":                              "-ERR quantity is invalid",
		"THROTTLE k 4 1 1 -1":                                 "-ERR quantity is invalid",
		"THROTTLE k 0 1 1":                                    "-ERR max_burst is invalid",
		"CL.THROTTLE k 4 0 1":                                 "-ERR count is invalid",
		"CL.THROTTLE k 4 1":                                   "-ERR wrong number of arguments for 'cl.throttle' command",
		"CL.THROTTLE k 100000000 1 3600":                      "-ERR the limit is invalid: burst",
		"CL.THROTTLE " + strings.Repeat("k", 1025) + " 1 1 1": "-ERR the key has 1025 bytes",
		"GET a":            "-ERR unknown command 'GET': use one of CL.THROTTLE",
		"SELECT 1":         "-ERR DB index",
		"AUTH a":           "-ERR AUTH was called, but this listener takes no tokens",
		"HELLO 4":          "-NOPROTO",
		"HG.DECIDE a=b":    "-ERR \"a\" is not a name",
		"HG.DECIDE ip=x":   "-ERR ip",
		"*1\r\n+a":         "-ERR Protocol error: expected '$', got '+'",
		"*200\r\n":         "-ERR Protocol error: invalid multibulk length",
		"*x\r\n":           "-ERR Protocol error: invalid multibulk length",
		"ECHO \"a":         "-ERR Protocol error: unbalanced quotes in request",
		"*1\r\n$99999\r\n": "-ERR Protocol error: invalid bulk length",
	} {
		conn := dial(t, at)
		exchange(t, conn, send+"\r\n", want)
		if !strings.Contains(want, "Protocol") {
			continue
		}
		if rest, err := io.ReadAll(conn); err != nil || !strings.HasSuffix(string(rest), "\r\n") {
			t.Errorf("after %q: %q, %v", send, rest, err)
		}
	}
}

func TestConnectionCommands(t *testing.T) {
	_, at := startServer(t, new(clock), 0)
	conn := dial(t, at)
	exchange(t, conn, "PING\r\nping hi\r\nECHO \"a b\"\r\nSELECT 0\r\nCLIENT SETNAME me\r\nCLIENT GETNAME\r\nCLIENT SETINFO lib-name x\r\nCLIENT ID\r\n",
		"+PONG\r\n$2\r\nhi\r\n$3\r\na b\r\n+OK\r\n+OK\r\n$2\r\nme\r\n+OK\r\n:1\r\n")
	exchange(t, conn, "RESET\r\nCLIENT GETNAME\r\nCOMMAND COUNT\r\n", "+RESET\r\n$-1\r\n:13\r\n")
	exchange(t, conn, "HELLO 3\r\nCLIENT GETNAME\r\n", "%7\r\n$6\r\nserver\r\n$8\r\nheadgate\r\n$7\r\nversion\r\n$5\r\n1.2.3\r\n"+
		"$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n_\r\n")
	exchange(t, conn, "QUIT\r\nPING\r\n", "+OK\r\n")
	if rest, err := io.ReadAll(conn); err != nil || len(rest) > 0 {
		t.Errorf("after QUIT: %q, %v", rest, err)
	}
}

func TestDecide(t *testing.T) {
	_, at := startServer(t, new(clock), 0)
	conn := dial(t, at)
	exchange(t, conn, "HG.DECIDE ip=192.0.2.1\r\n", "*30\r\n$7\r\nverdict\r\n$5\r\nallow\r\n$6\r\nreason\r\n$12\r\nwithin_limit\r\n$6\r\npolicy\r\n$6\r\nper-ip\r\n"+
		"$5\r\nlimit\r\n:2\r\n$9\r\nremaining\r\n:1\r\n$5\r\ncount\r\n:2\r\n$6\r\nperiod\r\n$2\r\n60\r\n$11\r\nreset_after\r\n$2\r\n30\r\n"+
		"$11\r\nretry_after\r\n$1\r\n0\r\n$6\r\nstatus\r\n:0\r\n$8\r\nlocation\r\n$0\r\n\r\n$8\r\nfallback\r\n:0\r\n$5\r\nmarks\r\n*0\r\n$8\r\nviolated\r\n*0\r\n$7\r\nmetered\r\n:0\r\n")
	exchange(t, conn, "HG.DECIDE ip=192.0.2.1 COST 2\r\nPING\r\n", "*30\r\n$7\r\nverdict\r\n$4\r\ndeny\r\n$6\r\nreason\r\n$10\r\nover_limit\r\n")
}

// TestWaitIsNoBooking: a request that would have to wait is refused with the time of the first place, and books nothing: a
// booking that stays would make the next one wait longer.
func TestWaitIsNoBooking(t *testing.T) {
	for _, rule := range []string{
		"algorithm: leaky_bucket, limits: [1/1h], burst: 5",
		"limits: [1/1h], on_exceed: {action: delay, max_wait: 10h, max_waiters: 5}",
	} {
		g := guards.New(t, "rules: [{name: late, key: [all], "+rule+"}]")
		_, at := startWith(t, Config{Guard: g}, WriteTimeout)
		conn := dial(t, at)
		exchange(t, conn, "HG.DECIDE path=/\r\n", "*30\r\n$7\r\nverdict\r\n$5\r\nallow\r\n")
		for range 10 { // More than the queue has places.
			conn := dial(t, at)
			exchange(t, conn, "HG.DECIDE path=/\r\n", "*30\r\n$7\r\nverdict\r\n$4\r\ndeny\r\n$6\r\nreason\r\n$10\r\nover_limit\r\n")
			lines := answer(t, conn, 25)
			at := slices.Index(lines, "retry_after")
			if at < 0 {
				t.Fatalf("%s: the answer lacks retry_after: %q", rule, lines)
			}
			if seconds, err := strconv.ParseFloat(lines[at+2], 64); err != nil || seconds > 3600 || seconds < 3500 {
				t.Errorf("%s: retry_after is %s, want the hour of the first place", rule, lines[at+2])
			}
		}
	}
}

// TestByteByByte sends commands in the smallest pieces, of both versions of the protocol.
func TestByteByByte(t *testing.T) {
	_, at := startServer(t, new(clock), 0)
	conn := dial(t, at)
	text := "*5\r\n$11\r\nCL.THROTTLE\r\n$1\r\nk\r\n$1\r\n4\r\n$1\r\n1\r\n$1\r\n1\r\nPING\r\n"
	slowly := func(text string) {
		for i := range len(text) {
			if _, err := io.WriteString(conn, text[i:i+1]); err != nil {
				t.Fatal(err)
			}
		}
	}
	slowly(text)
	exchange(t, conn, "", five(0, 5, 4, -1, 1)+"+PONG\r\n")
	slowly("*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n*2\r\n$9\r\nHG.DECIDE\r\n$12\r\nip=192.0.2.1\r\n" + text)
	answer := ""
	for in := bufio.NewReader(conn); !strings.HasSuffix(answer, "+PONG\r\n"); {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("%v after %q", err, answer)
		}
		answer += line
	}
	for _, part := range []string{"%7\r\n", "%15\r\n$7\r\nverdict\r\n$5\r\nallow\r\n", "$6\r\nperiod\r\n,60\r\n", "$8\r\nfallback\r\n#f\r\n", five(0, 5, 3, -1, 2)} {
		if !strings.Contains(answer, part) {
			t.Errorf("the answers %q lack %q", answer, part)
		}
	}
}

// TestLongPipeline: 10,000 commands are answered in their order.
func TestLongPipeline(t *testing.T) {
	s, at := startServer(t, new(clock), 0)
	conn := dial(t, at)
	const n = 10_000
	go func() {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "ECHO %d\r\nCL.THROTTLE k %d 1 3600\r\n", i, n-1)
		}
		_, _ = io.WriteString(conn, b.String())
	}()
	r := bufio.NewReader(conn)
	for i := range n {
		text := fmt.Sprint(i)
		want := fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) + five(0, n, int64(n-1-i), -1, int64(3600*(i+1)))
		got := make([]byte, len(want))
		if _, err := io.ReadFull(r, got); err != nil || string(got) != want {
			t.Fatalf("answer %d is %q (%v), want %q", i, got, err, want)
		}
	}
	if stats := s.Stats(); stats.Commands != 2*n || stats.Faults != 0 {
		t.Errorf("the counters are %+v", stats)
	}
}

// TestIdle: a connection without a complete command is closed.
func TestIdle(t *testing.T) {
	_, at := startServer(t, new(clock), 200*time.Millisecond)
	conn := dial(t, at)
	exchange(t, conn, "PING\r\n*1\r\n", "+PONG\r\n")
	if rest, err := io.ReadAll(conn); err != nil || len(rest) > 0 {
		t.Errorf("the end is %q, %v", rest, err)
	}
}

func memoryStore(t *testing.T) headgate.Store {
	t.Helper()
	store, err := memory.New(memory.Config{MaxMemory: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return store
}
