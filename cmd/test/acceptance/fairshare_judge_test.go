package acceptance

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// decided is a line of the access log.
type decided struct {
	client string // the path, which byName sets to the client
	at     int64  // in microseconds
	due    int64  // the due time of the request, in microseconds; at for a request without it
	passed bool
}

// readDecided reads an access log, in the order of the decisions.
func readDecided(t *testing.T, path string) []decided {
	t.Helper()
	log, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var all []decided
	names := map[string]string{} // keeps one copy of each name
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		uri, verdict, at := member(lines.Bytes(), `"uri":"/`), member(lines.Bytes(), `"verdict":"`), member(lines.Bytes(), `"decided_at":`)
		client, due, says := bytes.Cut(uri, []byte(dueField))
		name, known := names[string(client)]
		if !known {
			name = string(client)
			names[name] = name
		}
		if len(verdict) == 0 || len(at) == 0 {
			t.Fatalf("no decision is in %s", lines.Bytes())
		}
		d := decided{client: name, at: micros(t, string(at)), passed: string(verdict) == "allow"}
		if d.due = d.at; says {
			d.due = unixMicros(t, due)
		}
		all = append(all, d)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(all, func(a, b decided) int { return cmp.Compare(a.at, b.at) })
	return all
}

func unixMicros(t *testing.T, digits []byte) int64 {
	t.Helper()
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// member gives the value after a name in a line. Clients of these tests send no such name.
func member(line []byte, name string) []byte {
	_, rest, _ := bytes.Cut(line, []byte(name))
	if end := bytes.IndexAny(rest, `",}`); end >= 0 {
		return rest[:end]
	}
	return nil
}

// sharedOut has the parameters for judging a load.
type sharedOut struct {
	cycle    time.Duration
	capacity int
	// fair is a default share: the first fair requests of an owner in a cycle are within its share.
	fair int
	// warm is the number of cycles at the start that are not judged, because clients are not yet
	// known. The bound of the capacity applies to each cycle.
	warm int
	// cycles is the number of cycles of the load. Requests after them are not judged.
	cycles int
}

// stall is the time without a decision after which the machine has stalled. Its due requests
// then come together, and the cycle does not show the possible use.
const stall = 20 * time.Millisecond

// late is the time from its due time to its decision after which a request was late. Some
// requests then come together, and they take the last units of a cycle earlier than by their due
// times. The requests of a quiet machine are late by less, most of the time.
const late = 5 * time.Millisecond

// judgement is the result for a load.
type judgement struct {
	most int // the largest number of units in a cycle
	// cycles counts the judged cycles, and stalled those left out because the machine stalled.
	cycles, stalled int
	// could is the demand up to the capacity, and used is the admitted part.
	could, used int
	// within counts the owners' requests within their default shares in all cycles. refused counts
	// the refused ones among them.
	within, refused int
	// bunched counts the refusals after a burst that the machine caused: by the due times there
	// was none or a smaller one, or some request shortly before was late.
	bunched int
	// unexcused counts the refusals that no burst explains.
	unexcused int
}

func (j *judgement) String() string {
	return fmt.Sprintf("at most %d in a cycle; in %d cycles, without %d stalled ones: %.4f used; in total %d of %d within their shares refused, %d because the load was late, %d without a burst",
		j.most, j.cycles, j.stalled, float64(j.used)/float64(max(1, j.could)), j.refused, j.within, j.bunched, j.unexcused)
}

// refusals counts all refusals except those after a burst that the machine caused.
func (j *judgement) refusals() int { return j.refused - j.bunched }

// judge reads the decisions in order. Owners are the clients with names that begin with "owner".
func (o sharedOut) judge(all []decided) *judgement {
	j := &judgement{}
	width := o.cycle.Microseconds()
	for from, n := 0, 0; from < len(all); n++ {
		start := all[from].at / width * width
		to, _ := slices.BinarySearchFunc(all, start+width, func(d decided, at int64) int { return cmp.Compare(d.at, at) })
		o.judgeCycle(j, all[from:to], start, n >= o.warm && n < o.cycles)
		from = to
	}
	return j
}

func (o sharedOut) judgeCycle(j *judgement, cycle []decided, start int64, counts bool) {
	admitted := 0
	for _, d := range cycle {
		if d.passed {
			admitted++
		}
	}
	j.most = max(j.most, admitted)
	if !counts {
		return
	}
	j.cycles++
	o.owners(j, cycle, start)
	if o.stalled(cycle, start) {
		j.stalled++
		return
	}
	j.used += admitted
	j.could += min(len(cycle), o.capacity)
}

// asked has the times of an owner's requests in a cycle, from its start, and the number of the
// refused ones.
type asked struct {
	at, due []int64
	refused int
}

// owners counts the owners' requests within their default shares, and the refused ones among
// them with their reasons.
func (o sharedOut) owners(j *judgement, cycle []decided, start int64) {
	all, lastLate := map[string]*asked{}, start-stall.Microseconds()
	for _, d := range cycle {
		if d.at-d.due > late.Microseconds() {
			lastLate = d.at
		}
		if !strings.HasPrefix(d.client, "owner") {
			continue
		}
		client := all[d.client]
		if client == nil {
			client = &asked{}
			all[d.client] = client
		}
		if len(client.at) == o.fair {
			continue
		}
		client.at, client.due = append(client.at, d.at-start), append(client.due, max(0, d.due-start))
		j.within++
		if d.passed {
			continue
		}
		j.refused++
		client.refused++
		switch {
		case client.refused > o.excess(client.at):
			j.unexcused++
		case d.at-lastLate < stall.Microseconds(), client.refused > o.excess(slices.Sorted(slices.Values(client.due))):
			j.bunched++
		}
	}
}

// stalled reports a long time without decisions.
func (o sharedOut) stalled(cycle []decided, start int64) bool {
	last := start
	for _, d := range cycle {
		if d.at-last > stall.Microseconds() {
			return true
		}
		last = d.at
	}
	return start+o.cycle.Microseconds()-last > stall.Microseconds()
}

// excess gives the largest number of requests that an owner sent beyond its entitlement for the
// rest of the cycle, between some time and the last of the times. At most that many of them may be
// refused: an entitlement only falls within a cycle, and each request takes a unit of it.
func (o sharedOut) excess(times []int64) (most int) {
	width := o.cycle.Microseconds()
	for i, from := range times {
		owed := (width - from) * int64(o.fair) / width
		most = max(most, len(times)-i-int(owed))
	}
	return most
}

// TestSharedOutCatches: the judge finds each kind of fault.
func TestSharedOutCatches(t *testing.T) {
	o := sharedOut{cycle: 100 * time.Millisecond, capacity: 10, fair: 5, warm: 1, cycles: 2}
	evenly := func(cycle int64, change func(n int, d *decided)) []decided {
		var all []decided
		for n := range 10 {
			d := decided{client: "flood", at: cycle*100_000 + 5_000 + int64(n)*10_000, passed: true}
			d.due = d.at
			change(n, &d)
			all = append(all, d)
		}
		return all
	}
	owner := func(n int, d *decided) {
		if n%2 == 0 {
			d.client = "owner"
		}
	}
	for name, c := range map[string]struct {
		log  []decided
		want judgement
	}{
		"nothing": {nil, judgement{}},
		"the first cycle only counts for the bound": {evenly(7, func(int, *decided) {}), judgement{most: 10}},
		"no fault": {append(evenly(7, owner), evenly(8, owner)...), judgement{most: 10, cycles: 1, could: 10, used: 10, within: 5}},
		"an owner with an even load is refused": {
			append(evenly(7, owner), evenly(8, func(n int, d *decided) { owner(n, d); d.passed = n != 2 })...),
			judgement{most: 10, cycles: 1, could: 10, used: 9, within: 5, refused: 1, unexcused: 1},
		},
		"an owner is refused who asks late for all": {
			append(evenly(7, owner), evenly(8, func(n int, d *decided) {
				if n >= 7 {
					d.client, d.passed = "owner", n != 9
				}
			})...),
			judgement{most: 10, cycles: 1, could: 10, used: 9, within: 3, refused: 1},
		},
		"an owner that was to ask evenly asks late for all": {
			append(evenly(7, owner), evenly(8, func(n int, d *decided) {
				if n >= 7 {
					d.client, d.passed, d.due = "owner", n != 9, 800_000+int64(n-7)*20_000
				}
			})...),
			judgement{most: 10, cycles: 1, could: 10, used: 9, within: 3, refused: 1, bunched: 1},
		},
		"an owner that was due in the cycle before": {
			append(evenly(7, owner), evenly(8, func(n int, d *decided) {
				if n >= 7 {
					d.client, d.passed, d.due = "owner", n != 9, 790_000
				}
			})...),
			judgement{most: 10, cycles: 1, could: 10, used: 9, within: 3, refused: 1, bunched: 1},
		},
		"an owner is refused more often than its burst explains": {
			append(evenly(7, owner), evenly(8, func(n int, d *decided) {
				if n == 0 || n == 9 {
					d.client, d.passed = "owner", false
				}
			})...),
			judgement{most: 10, cycles: 1, could: 10, used: 8, within: 2, refused: 2, unexcused: 2},
		},
		"an owner that is late at the end of a cycle": {
			append(evenly(7, owner), evenly(8, func(n int, d *decided) {
				if n == 9 {
					d.client, d.passed, d.due = "owner", false, d.at-5_001
				}
			})...),
			judgement{most: 10, cycles: 1, could: 10, used: 9, within: 1, refused: 1, bunched: 1},
		},
		"an owner is refused after a late flood": {
			append(evenly(7, owner), evenly(8, func(n int, d *decided) {
				switch n {
				case 8:
					d.due = d.at - 5_001
				case 9:
					d.client, d.passed = "owner", false
				}
			})...),
			judgement{most: 10, cycles: 1, could: 10, used: 9, within: 1, refused: 1, bunched: 1},
		},
		"an owner is refused long after a late flood": {
			append(evenly(7, owner), evenly(8, func(n int, d *decided) {
				switch n {
				case 7:
					d.due = d.at - 5_001
				case 9:
					d.client, d.passed = "owner", false
				}
			})...),
			judgement{most: 10, cycles: 1, could: 10, used: 9, within: 1, refused: 1},
		},
		"an owner that is in time at the end of a cycle": {
			append(evenly(7, owner), evenly(8, func(n int, d *decided) {
				if n == 9 {
					d.client, d.passed, d.due = "owner", false, d.at-5_000
				}
			})...),
			judgement{most: 10, cycles: 1, could: 10, used: 9, within: 1, refused: 1},
		},
		"a machine that stalls": {
			append(evenly(7, owner), slices.Delete(evenly(8, owner), 3, 6)...), judgement{most: 10, cycles: 1, stalled: 1, within: 4},
		},
		"after the end": {
			append(append(evenly(7, owner), evenly(8, owner)...), evenly(9, func(_ int, d *decided) { d.client, d.passed = "owner", false })...),
			judgement{most: 10, cycles: 1, could: 10, used: 10, within: 5},
		},
		"too many": {append(evenly(7, owner), evenly(7, owner)...), judgement{most: 20}},
		"beyond an owner's share": {
			append(evenly(7, owner), evenly(8, func(n int, d *decided) { d.client, d.passed = "owner", n < 5 })...),
			judgement{most: 10, cycles: 1, could: 10, used: 5, within: 5},
		},
	} {
		slices.SortStableFunc(c.log, func(a, b decided) int { return cmp.Compare(a.at, b.at) })
		if got := o.judge(c.log); *got != c.want {
			t.Errorf("%s: %+v, want %+v", name, *got, c.want)
		}
	}
}
