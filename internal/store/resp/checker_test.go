package resp_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/store/resp"
)

const most = 4 << 10 // of an answer to a script, in these tests

// command renders a command as the client does.
func command(words ...string) string {
	b := fmt.Sprintf("*%d\r\n", len(words))
	for _, w := range words {
		b += fmt.Sprintf("$%d\r\n%s\r\n", len(w), w)
	}
	return b
}

// after gives a Checker that has seen commands and the replies to the first commands.
func after(tb testing.TB, commands, replies string) *resp.Checker {
	tb.Helper()
	c := resp.New(most)
	if err := c.Sent([]byte(commands)); err != nil {
		tb.Fatal(err)
	}
	if err := c.Received([]byte(replies)); err != nil {
		tb.Fatal(err)
	}
	return c
}

var (
	evalsha   = command("EVALSHA", "0123456789abcdef0123456789abcdef01234567", "1", "hg2:{k}:0", "x")
	hello     = command("HELLO", "3")
	helloSays = "%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n"
	subscribe = command("SUBSCRIBE", "+sentinel", "+switch-master")
	said      = ">3\r\n$9\r\nsubscribe\r\n$9\r\n+sentinel\r\n:1\r\n>3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:2\r\n"
)

func event(channel, text string) string {
	return fmt.Sprintf(">3\r\n$7\r\nmessage\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(channel), channel, len(text), text)
}

// cases are replies to commands; refused says whether they must not pass.
var cases = []struct {
	name, sent, reply string
	refused           bool
}{
	{"string", evalsha, "$8\r\na\r\nb\r\n\x00\x01\r\n", false},
	{"empty string", evalsha, "$0\r\n\r\n", false},
	{"null", evalsha, "$-1\r\n", false},
	{"modern null", evalsha, "_\r\n", false},
	{"status", evalsha, "+OK\r\n", false},
	{"error", evalsha, "-NOSCRIPT No matching script. Please use EVAL.\r\n", false},
	{"moved", evalsha, "-MOVED 866 127.0.0.1:7001\r\n", false},
	{"number", evalsha, ":-42\r\n", false},
	{"boolean", evalsha, "#t\r\n", false},
	{"hello", hello, helloSays, false},
	{"slots", command("CLUSTER", "SLOTS"), "*1\r\n*3\r\n:0\r\n:16383\r\n*4\r\n$9\r\n127.0.0.1\r\n:7000\r\n$2\r\nid\r\n*0\r\n", false},
	{"role", command("ROLE"), "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n", false},
	{"master", command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "m"), "*2\r\n$9\r\n127.0.0.1\r\n$4\r\n6379\r\n", false},
	{"no master", command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "m"), "_\r\n", false},
	{"two replies", evalsha + evalsha, "+a\r\n+b\r\n", false},
	{"subscription", hello + subscribe, helloSays + said, false},
	{"event", hello + subscribe, helloSays + said + event("+switch-master", "m 127.0.0.1 1 127.0.0.1 2"), false},
	{"unsubscription", hello + command("UNSUBSCRIBE", "a") + command("PING"), helloSays + ">3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n+PONG\r\n", false},
	{"unsubscription without rights", hello + command("UNSUBSCRIBE", "a") + command("PING"), helloSays + "-NOPERM no\r\n-NOPERM User x has no permissions to run the 'ping' command\r\n", false},
	{"older subscription", command("SUBSCRIBE", "c"), "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n", false},

	{"negative string", evalsha, "$-7\r\n", true},
	{"negative array", evalsha, "*-5\r\n", true},
	{"length beyond 63 bits", evalsha, "$9223372036854775800\r\n", true},
	{"length that wraps around", evalsha, "$18446744073709551617\r\n", true},
	{"a reply too many", evalsha, "+OK\r\n+OK\r\n", true},
	{"a reply to nothing", "", "+OK\r\n", true},
	{"a reply to half a command", evalsha[:20], "+OK\r\n", true},
	{"array without end", evalsha, "*2147483647\r\n", true},
	{"512 MiB", evalsha, "$536870912\r\n", true},
	{"array for a script", evalsha, "*1\r\n+a\r\n", true},
	{"map for a script", evalsha, "%1\r\n+a\r\n+b\r\n", true},
	{"a line without end", evalsha, "+" + strings.Repeat("x", 5000), true},
	{"a line without a carriage return", evalsha, "+OK\n", true},
	{"a carriage return within a line", evalsha, "+O\rK\r\n", true},
	{"a string longer than it says", evalsha, "$1\r\nab\r\n", true},
	{"a length that is no number", evalsha, "$1a\r\n", true},
	{"no length", evalsha, "$\r\n", true},
	{"two signs", evalsha, ":--1\r\n", true},
	{"an unknown type", evalsha, "x\r\n", true},
	{"a streamed string", evalsha, "$?\r\n;1\r\na\r\n;0\r\n", true},
	{"an attribute", evalsha, "|1\r\n+a\r\n+b\r\n+OK\r\n", true},
	{"a long boolean", evalsha, "#true\r\n", true},
	{"a push message", evalsha, ">2\r\n+invalidate\r\n_\r\n", true},
	{"a redirection to nowhere", evalsha, "-MOVED\r\n", true},
	{"a redirection to nowhere, cut", evalsha, "-ERR MOVED 1\r\n", true},
	{"an ASK to nowhere", evalsha, "-ASK 1\r\n", true},
	{"a REDIRECT to nowhere", evalsha, "-REDIRECT\r\n", true},
	{"elements of elements", hello, strings.Repeat("*1\r\n", 9) + "+a\r\n", true},
	{"more elements than a cluster has", hello, "*500000\r\n*500000\r\n", true},
	{"a map of 2^62", hello, "%4611686018427387904\r\n", true},
	{"a push message within a reply", hello, "*1\r\n>2\r\n+a\r\n+b\r\n", true},
	{"an empty role", command("ROLE"), "*0\r\n", true},
	{"half an address", command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "m"), "*1\r\n$1\r\na\r\n", true},
	{"a subscription that was not asked for", hello + subscribe, helloSays + said + said, true},
	{"an event with few words", hello + subscribe, helloSays + said + event("+switch-master", "m 127.0.0.1 1 127.0.0.1"), true},
	{"an event of a slave with few words", hello + subscribe, helloSays + said + event("+reboot", "slave a b c"), true},
	{"a sentinel with few words", hello + subscribe, helloSays + said + event("+sentinel", "x"), true},
	{"a status for a subscription", hello + subscribe, helloSays + "+QUEUED\r\n", true},
	{"an error QUEUED for a subscription", hello + subscribe, helloSays + "-QUEUED\r\n", true},
	{"an unsubscription amid subscriptions", hello + subscribe, helloSays + said[:len(said)/2] + ">3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n" + said, true},
	{"no pong", hello + command("UNSUBSCRIBE", "a") + command("PING"), helloSays + ">3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n+OK\r\n", true},
	{"an older event without elements", command("SUBSCRIBE", "c"), "*0\r\n", true},
}

// TestReplies: what Redis answers passes, what it never answers is refused, and both however the
// bytes arrive.
func TestReplies(t *testing.T) {
	for _, c := range cases {
		whole := after(t, c.sent, "")
		err := whole.Received([]byte(c.reply))
		if refused := errors.Is(err, resp.ErrReply); refused != c.refused || err != nil && !refused {
			t.Errorf("%s: %v, want refused %t", c.name, err, c.refused)
		}
		apart := after(t, c.sent, "")
		var last error
		for i := range len(c.reply) {
			last = apart.Received([]byte(c.reply[i : i+1]))
		}
		if (last != nil) != c.refused {
			t.Errorf("%s, byte by byte: %v, want refused %t", c.name, last, c.refused)
		}
		if err != nil && !errors.Is(whole.Received([]byte("+OK\r\n")), resp.ErrReply) {
			t.Errorf("%s: a connection that was refused goes on", c.name)
		}
	}
}

// TestLengthsAreRefusedBeforeTheirBytes: the client allocates by the header alone.
func TestLengthsAreRefusedBeforeTheirBytes(t *testing.T) {
	for _, n := range []int64{most + 1, math.MaxInt32, math.MaxInt64} {
		if err := after(t, evalsha, "").Received(fmt.Appendf(nil, "$%d\r\n", n)); err == nil {
			t.Errorf("$%d passes", n)
		}
	}
	if err := after(t, evalsha, "").Received(fmt.Appendf(nil, "$%d\r\n%s\r\n", most, strings.Repeat("x", most))); err != nil {
		t.Errorf("the longest answer: %v", err)
	}
}

// TestLargestCluster: a cluster whose every slot has another master, each with two replicas, is
// still told.
func TestLargestCluster(t *testing.T) {
	c := after(t, command("CLUSTER", "SLOTS"), "")
	node := "*4\r\n$15\r\n100.100.100.100\r\n:16379\r\n$40\r\n" + strings.Repeat("a", 40) + "\r\n*2\r\n$8\r\nhostname\r\n$32\r\n" + strings.Repeat("h", 32) + "\r\n"
	if err := c.Received([]byte("*16384\r\n")); err != nil {
		t.Fatal(err)
	}
	for slot := range 16384 {
		if err := c.Received(fmt.Appendf(nil, "*5\r\n:%d\r\n:%d\r\n%s%s%s", slot, slot, node, node, node)); err != nil {
			t.Fatalf("slot %d: %v", slot, err)
		}
	}
	if err := c.Sent([]byte(command("PING"))); err != nil {
		t.Fatal(err)
	}
	if err := c.Received([]byte("+PONG\r\n")); err != nil {
		t.Error(err)
	}
}

// TestNothingIsAllocated: a call and its answer allocate nothing.
func TestNothingIsAllocated(t *testing.T) {
	c, sent := resp.New(most), []byte(evalsha)
	got := fmt.Appendf(nil, "$%d\r\n%s\r\n", most, strings.Repeat("x", most))
	if n := testing.AllocsPerRun(100, func() {
		if c.Sent(sent) != nil || c.Received(got) != nil {
			t.Fatal("refused")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestConnEnds: on a fault, the reader gets no bytes, and the connection is closed.
func TestConnEnds(t *testing.T) {
	near, far := net.Pipe()
	c := resp.Wrap(near, most)
	answered := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(far, make([]byte, len(evalsha)))
		if err == nil {
			_, err = far.Write([]byte("$-7\r\n"))
		}
		answered <- err
	}()
	if _, err := c.Write([]byte(evalsha)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 64)); n != 0 || !errors.Is(err, resp.ErrReply) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	if _, err := far.Write([]byte("x")); err == nil {
		t.Error("the connection is open")
	}
	if _, err := c.Write([]byte(evalsha)); !errors.Is(err, resp.ErrReply) {
		t.Errorf("written to a connection that was refused: %v", err)
	}
}

func BenchmarkCall(b *testing.B) {
	c, sent := resp.New(most), []byte(evalsha)
	got := fmt.Appendf(nil, "$24\r\n%s\r\n", strings.Repeat("x", 24))
	for b.Loop() {
		if c.Sent(sent) != nil || c.Received(got) != nil {
			b.Fatal("refused")
		}
	}
}

// FuzzReplies: a Checker never panics. Its verdict does not depend on how the bytes are cut.
// It accepts only what a simple reader of whole replies accepts, within the bounds.
func FuzzReplies(f *testing.F) {
	for _, c := range cases {
		f.Add([]byte(c.sent), []byte(c.reply), uint8(3))
	}
	f.Fuzz(func(t *testing.T, sent, replies []byte, step uint8) {
		whole, apart := resp.New(most), resp.New(most)
		fault := whole.Sent(sent)
		if (fault == nil) != (sendApart(apart, sent, int(step)) == nil) {
			t.Fatal("commands are judged by how they are cut")
		}
		if fault != nil {
			return
		}
		err := whole.Received(replies)
		if (err == nil) != (receiveApart(apart, replies, int(step)) == nil) {
			t.Fatalf("replies are judged by how they are cut: %v", err)
		}
		for err == nil && len(replies) > 0 {
			e, rest, s := parse(replies)
			if s == bad {
				t.Fatalf("%q passes, and is no reply", replies)
			}
			if s == short {
				return
			}
			checkElement(t, &e, 0)
			replies = rest
		}
	})
}

func sendApart(c *resp.Checker, b []byte, step int) (err error) {
	for step = max(step, 1); len(b) > 0 && err == nil; b = b[min(step, len(b)):] {
		err = c.Sent(b[:min(step, len(b))])
	}
	return err
}

func receiveApart(c *resp.Checker, b []byte, step int) (err error) {
	for step = max(step, 1); len(b) > 0 && err == nil; b = b[min(step, len(b)):] {
		err = c.Received(b[:min(step, len(b))])
	}
	return err
}

func checkElement(t *testing.T, e *element, depth int) {
	t.Helper()
	if depth > 8 || len(e.kids) > 1<<19 || len(e.text) > 64<<10 {
		t.Fatalf("%q passes, %d deep with %d elements and %d bytes", e.typ, depth, len(e.kids), len(e.text))
	}
	for i := range e.kids {
		checkElement(t, &e.kids[i], depth+1)
	}
}
