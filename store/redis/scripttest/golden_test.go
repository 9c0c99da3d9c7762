package script_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/calendar"
	"github.com/headgate/headgate/internal/store/script"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
	"github.com/headgate/headgate/store/storetest"
)

// TestStatesAreKnown compares the keys and values of every kind of state with the golden file of
// Prefix. A golden file never changes: a changed form needs a new Prefix.
func TestStatesAreKnown(t *testing.T) {
	client := newClient(t, testserver.Start(t).Addr)
	clock := storetest.NewClock()
	s := newStore(t, client, 0, clock.Now)
	for i, policy := range everyPolicy() {
		id, err := s.Prepare(policy)
		if err != nil {
			t.Fatal(err)
		}
		op := headgate.Op{Key: "golden", Window: uint8(i), Policy: id, Cost: min(3, policy.Limit.Count)}
		apply(t, s, op)
		clock.Advance(400 * time.Millisecond)
		op.Cost = min(1, policy.Limit.Count)
		last := apply(t, s, op)[0]
		op.Window += 100
		apply(t, s, op)
		if err := s.Return(t.Context(), []headgate.Receipt{last.Receipt}); err != nil {
			t.Fatal(err)
		}
	}
	long, err := s.Prepare(headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 400, Per: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	for range 300 {
		clock.Advance(time.Microsecond)
		apply(t, s, headgate.Op{Key: "long", Policy: long, Cost: 1})
	}
	apply(t, s, headgate.Op{Key: "forgotten", Policy: long, Cost: 1})
	if err := s.Forget(t.Context(), []headgate.Op{{Key: "forgotten"}}); err != nil {
		t.Fatal(err)
	}
	tagged := newStore(t, client, 256, clock.Now)
	inSlot, err := tagged.Prepare(headgate.Policy{Limit: headgate.Limit{Count: 10, Per: time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	apply(t, tagged, headgate.Op{Key: "tagged", Policy: inSlot, Cost: 1})
	checkGolden(t, "testdata/states."+strings.Trim(script.Prefix, ":")+".golden", dump(t, client))
}

// TestCalendarStatesAreKnown does the same for windows of the calendar, also with a count that has
// ended.
func TestCalendarStatesAreKnown(t *testing.T) {
	client := newClient(t, testserver.Start(t).Addr)
	clock := storetest.NewClock()
	s := newStore(t, client, 0, clock.Now)
	for i := range 8 {
		unit := headgate.Day + headgate.CalendarUnit(i%4)
		if i == 4 {
			clock.Advance(31 * 24 * time.Hour)
		}
		id, err := s.Prepare(headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 6, Calendar: unit}})
		if err != nil {
			t.Fatal(err)
		}
		edges := calendar.Default().Edges(unit, clock.Now().Time())
		apply(t, s, headgate.Op{Key: "golden", Policy: id, Cost: 3, Edges: &edges})
	}
	checkGolden(t, "testdata/calendar."+strings.Trim(script.Prefix, ":")+".golden", dump(t, client))
}

// dump gives all keys with their values, sorted.
func dump(t *testing.T, client rueidis.Client) string {
	t.Helper()
	var lines []string
	for _, key := range keys(t, client) {
		if strings.HasSuffix(key, ":l") {
			all, err := client.Do(t.Context(), client.B().Lrange().Key(key).Start(0).Stop(-1).Build()).AsStrSlice()
			lines = append(lines, fmt.Sprintf("%s [%x] %v", key, all, err))
			continue
		}
		value, err := client.Do(t.Context(), client.B().Get().Key(key).Build()).ToString()
		lines = append(lines, fmt.Sprintf("%s %x %v", key, value, err))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

func keys(t *testing.T, client rueidis.Client) []string {
	t.Helper()
	all, err := client.Do(t.Context(), client.B().Keys().Pattern("*").Build()).AsStrSlice()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var update = flag.Bool("update", false, "write the golden file of a new Prefix")

func checkGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		writeNew(t, path, got)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: run go test -update to write the form of a new Prefix", err)
	}
	if got == string(want) {
		return
	}
	wanted := strings.Split(string(want), "\n")
	for i, line := range strings.Split(got, "\n") {
		if i >= len(wanted) || line != wanted[i] {
			t.Fatalf("%s, line %d: got %s\nThe stored form has changed: change Prefix in version.go, or the letter of the algorithm, then run go test -update.", path, i+1, line)
		}
	}
	t.Errorf("%s has more lines than the server has keys", path)
}

// writeNew refuses to overwrite a file, because a released form keeps its Prefix.
func writeNew(t *testing.T, path, got string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		t.Fatalf("%v: change Prefix in version.go first", err)
	}
	if _, err := f.WriteString(got); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestScriptsAreKnownByTheirNames compares Script.SHA with the SHA that the server gives.
func TestScriptsAreKnownByTheirNames(t *testing.T) {
	client := newClient(t, testserver.Start(t).Addr)
	for _, s := range []script.Script{script.Decide(), script.GiveBack(), script.Forget()} {
		sha, err := client.Do(t.Context(), client.B().ScriptLoad().Script(s.Text).Build()).ToString()
		if err != nil || sha != s.SHA {
			t.Errorf("SCRIPT LOAD: got the SHA %s and error %v, want %s", sha, err, s.SHA)
		}
	}
}
