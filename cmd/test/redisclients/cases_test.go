package redisclients_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// row is one command, at a time after the start, and its answer as text.
type row struct {
	now     time.Duration
	command string
	want    string
}

const ms, s = time.Millisecond, time.Second

// table is what each client of Redis must see. Its parts are in order: they share keys.
func table() []row {
	return append(append(cell(), crab()...), append(decisionRows(), others()...)...)
}

// cell are rows of CL.THROTTLE, with the answers of redis-cell.
func cell() []row {
	return []row{
		{0, "CL.THROTTLE user123 15 30 60", "[0 16 15 -1 2]"},
		// A limit of 5 at once, and 1 per second.
		{0, "CL.THROTTLE k 4 1 1 6", "[1 5 5 -1 0]"}, // It can never succeed.
		{0, "CL.THROTTLE k 4 1 1", "[0 5 4 -1 1]"},
		{0, "CL.THROTTLE k 4 1 1", "[0 5 3 -1 2]"},
		{0, "CL.THROTTLE k 4 1 1", "[0 5 2 -1 3]"},
		{0, "CL.THROTTLE k 4 1 1", "[0 5 1 -1 4]"},
		{0, "CL.THROTTLE k 4 1 1", "[0 5 0 -1 5]"},
		{0, "CL.THROTTLE k 4 1 1", "[1 5 0 1 5]"},
		{3000 * ms, "CL.THROTTLE k 4 1 1", "[0 5 2 -1 3]"},
		{3100 * ms, "CL.THROTTLE k 4 1 1", "[0 5 1 -1 4]"},
		{4000 * ms, "CL.THROTTLE k 4 1 1", "[0 5 1 -1 4]"},
		{8000 * ms, "CL.THROTTLE k 4 1 1", "[0 5 4 -1 1]"},
		{9500 * ms, "CL.THROTTLE k 4 1 1", "[0 5 4 -1 1]"},
		{9500 * ms, "CL.THROTTLE k 4 1 1 0", "[0 5 4 -1 1]"},
		{9500 * ms, "CL.THROTTLE k 4 1 1 2", "[0 5 2 -1 3]"},
		{9500 * ms, "CL.THROTTLE k 4 1 1 5", "[1 5 2 3 3]"},
		// Seconds are rounded up on whole milliseconds, without a rest below a millisecond.
		{10 * s, "CL.THROTTLE rest 0 1 1", "[0 1 0 -1 1]"},
		{10*s + 999*ms, "CL.THROTTLE rest 0 1 1", "[1 1 0 1 1]"},
		{10*s + 999*ms + 1, "CL.THROTTLE rest 0 1 1", "[1 1 0 0 0]"},
		{10 * s, "CL.THROTTLE k 4 1 1 -1", "ERR quantity is invalid"},
		{10 * s, "CL.THROTTLE k 4 1 1 1.5", "ERR quantity is invalid"},
		{10 * s, "CL.THROTTLE k -1 1 1", "ERR max_burst is invalid"},
		{10 * s, "CL.THROTTLE k 4 0 1", "ERR count is invalid"},
		{10 * s, "CL.THROTTLE k 4 1 0", "ERR period is invalid"},
		{10 * s, "CL.THROTTLE k 4 1", "ERR wrong number of arguments"},
		{10 * s, "CL.THROTTLE " + strings.Repeat("k", 1024) + " 4 1 1", "[0 5 4 -1 1]"},
		{10 * s, "CL.THROTTLE " + strings.Repeat("k", 1025) + " 4 1 1", "ERR the key has 1025 bytes"},
	}
}

// crab are rows of THROTTLE, with the answers of throttlecrab: the limit is max_burst, 1 means allowed, the last two are
// swapped, and seconds are rounded down.
func crab() []row {
	return []row{
		{10 * s, "THROTTLE crab 2 1 1", "[1 2 1 1 0]"},
		{10 * s, "THROTTLE crab 2 1 1", "[1 2 0 2 0]"},
		{10500 * ms, "THROTTLE crab 2 1 1", "[0 2 0 1 0]"},
		{10500 * ms, "THROTTLE crab 2 1 1 0", "[1 2 0 1 0]"},
		{10500 * ms, "THROTTLE crab 2 1 1 3", "[0 2 0 1 -1]"},
		{11 * s, "THROTTLE crab 2 1 1 -1", "ERR quantity is invalid"},
		{11 * s, "THROTTLE crab 0 1 1", "ERR max_burst is invalid"},
		// After an idle time just short of the key's expiry, no more than the limit passes at once.
		{20 * s, "THROTTLE idle 10 1 1", "[1 10 9 1 0]"},
		{29999 * ms, "THROTTLE idle 10 1 1 10", "[1 10 0 10 0]"},
		{29999 * ms, "THROTTLE idle 10 1 1", "[0 10 0 10 1]"},
	}
}

// decisionRows are rows of HG.DECIDE: the rules allow 2 a minute for each ip.
func decisionRows() []row {
	allowed := "{count=2 fallback=0 limit=2 location= marks=[] metered=0 period=60 policy=per-ip reason=within_limit " +
		"remaining=%d reset_after=%d retry_after=0 status=0 verdict=allow violated=[]}"
	return []row{
		{30 * s, "HG.DECIDE ip=192.0.2.1", fmt.Sprintf(allowed, 1, 30)},
		{30 * s, "HG.DECIDE ip=192.0.2.1 COST 1", fmt.Sprintf(allowed, 0, 60)},
		{30 * s, "HG.DECIDE ip=192.0.2.1", "{count=2 fallback=0 limit=2 location= marks=[] metered=0 period=60 policy=per-ip " +
			"reason=over_limit remaining=0 reset_after=60 retry_after=30 status=429 verdict=deny violated=[per-ip]}"},
		{30 * s, "HG.DECIDE ip=192.0.2.2 COST -1", "ERR "},
		{30 * s, "HG.DECIDE ip=192.0.2.2 COST 0", "ERR "},
		{30 * s, "HG.DECIDE nothing=1", "ERR \"nothing\" is not a name"},
		// The limits that clients send have keys of their own.
		{30 * s, "CL.THROTTLE 192.0.2.1 4 1 1", "[0 5 4 -1 1]"},
	}
}

// others are rows of the other commands.
func others() []row {
	return []row{
		{30 * s, "PING", "PONG"},
		{30 * s, "PING hello", "hello"},
		{30 * s, "ECHO hello", "hello"},
		{30 * s, "SELECT 0", "OK"},
		{30 * s, "SELECT 1", "ERR DB index"},
		{30 * s, "CLIENT SETINFO LIB-NAME test", "OK"},
		{30 * s, "COMMAND COUNT", "13"},
		{30 * s, "GET a", "ERR unknown command 'GET'"},
		{30 * s, "PING", "PONG"},
	}
}

// TestClients walks the table with each client and each version of the protocol. Then it sends many commands at once, which are
// answered in their order.
func TestClients(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		connect func(t *testing.T, at string, version int) asker
		atOnce  int
	}{
		"socket": {socket, 10_000}, "go-redis": {goRedis, 10_000}, "rueidis": {rueidisClient, 10_000}, "node-redis": {nodeRedis, 10_000},
		"redis-cli": {redisCLI, 100}, // It waits for each answer.
	} {
		for _, version := range []int{2, 3} {
			t.Run(fmt.Sprintf("%s RESP%d", name, version), func(t *testing.T) {
				t.Parallel()
				c := new(clock)
				ask := of.connect(t, start(t, c), version)
				walk(t, c, ask)
				sendAtOnce(t, ask, of.atOnce)
			})
		}
	}
}

// walk sends the commands of the table.
func walk(t *testing.T, c *clock, ask asker) {
	t.Helper()
	for i, row := range table() {
		c.set(row.now)
		got := ask(t, strings.Fields(row.command))[0]
		if got != row.want && (!strings.HasPrefix(row.want, "ERR") || !strings.HasPrefix(got, row.want)) {
			t.Errorf("row %d, %.60s: got %s, want %s", i, row.command, got, row.want)
		}
	}
}

// sendAtOnce sends n commands, of which a limit admits a part.
func sendAtOnce(t *testing.T, ask asker, n int) {
	t.Helper()
	all, admitted := make([][]string, n), n*6/10
	for i := range all {
		all[i] = []string{"CL.THROTTLE", "together", fmt.Sprint(admitted - 1), "1", "60"}
	}
	answers := ask(t, all...)
	if len(answers) != n {
		t.Fatalf("%d answers", len(answers))
	}
	for i, got := range answers {
		want := fmt.Sprintf("[0 %d %d -1 %d]", admitted, admitted-1-i, 60*(i+1))
		if i >= admitted {
			want = fmt.Sprintf("[1 %d 0 60 %d]", admitted, 60*admitted)
		}
		if got != want {
			t.Fatalf("answer %d is %s, want %s", i, got, want)
		}
	}
}
