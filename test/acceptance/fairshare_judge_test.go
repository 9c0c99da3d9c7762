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
	client string // the path, by which byName tells it
	at     int64  // in microseconds
	due    int64  // when the load was to ask, likewise; at where the request does not say
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
	names := map[string]string{} // Each is kept once.
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

// member cuts the value out of a line that follows a name. What clients of these tests send
// holds no name.
func member(line []byte, name string) []byte {
	_, rest, _ := bytes.Cut(line, []byte(name))
	if end := bytes.IndexAny(rest, `",}`); end >= 0 {
		return rest[:end]
	}
	return nil
}

// sharedOut is what a load is judged by.
type sharedOut struct {
	cycle    time.Duration
	capacity int
	// fair is a default share: an owner's first so many requests of a cycle are within it.
	fair int
	// warm is how many cycles are left out at the begin, until all are known, but for the
	// bound of the capacity, which holds in each.
	warm int
	// cycles is how many the load has: what is on its way then is left out likewise.
	cycles int
}

// stall is the time without a decision after which a machine has stalled: what was due then
// came in a bunch, and the cycle says nothing of what could have been used.
const stall = 20 * time.Millisecond

// judgement is what the access log says of a load.
type judgement struct {
	most int // that a cycle admitted
	// cycles were looked at, and so many of them left out because the machine stalled.
	cycles, stalled int
	// could is what the clients asked for, up to the capacity, and used what they got.
	could, used int
	// within are the owners' requests within their default shares, in all cycles, and refused
	// those of them that were refused.
	within, refused int
	// bunched are those of the refused that a burst excuses which only the machine has made: by
	// the times when they were due there was none.
	bunched int
	// unexcused are those of the refused that no burst excuses.
	unexcused int
}

func (j *judgement) String() string {
	return fmt.Sprintf("at most %d in a cycle; in %d cycles, %d stalled left out: %.4f used; in all %d of %d within their shares refused, %d of them because the load was late, %d without a burst",
		j.most, j.cycles, j.stalled, float64(j.used)/float64(max(1, j.could)), j.refused, j.within, j.bunched, j.unexcused)
}

// refusals are those that count: no other than the machine's lateness made the others' bursts.
func (j *judgement) refusals() int { return j.refused - j.bunched }

// judge looks at decisions in their order. Clients are owners when their names begin with
// "owner".
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

// asked are the times of an owner's requests in a cycle, from its start.
type asked struct{ at, due []int64 }

// owners counts their requests within their default shares, those of them that were refused,
// and why.
func (o sharedOut) owners(j *judgement, cycle []decided, start int64) {
	all := map[string]*asked{}
	for _, d := range cycle {
		if !strings.HasPrefix(d.client, "owner") {
			continue
		}
		of := all[d.client]
		if of == nil {
			of = &asked{}
			all[d.client] = of
		}
		if len(of.at) == o.fair {
			continue
		}
		of.at, of.due = append(of.at, d.at-start), append(of.due, max(0, d.due-start))
		j.within++
		if d.passed {
			continue
		}
		j.refused++
		switch {
		case !o.excused(of.at):
			j.unexcused++
		case !o.excused(slices.Sorted(slices.Values(of.due))):
			j.bunched++
		}
	}
}

// stalled reports whether nothing was decided for long.
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

// excused reports whether an owner asked for more than the rest of the cycle owed it, from
// some moment to the last of the times: the one bound on which it may be refused.
func (o sharedOut) excused(times []int64) bool {
	width := o.cycle.Microseconds()
	for i, from := range times {
		if owed := (width - from) * int64(o.fair) / width; int64(len(times)-i) > owed {
			return true
		}
	}
	return false
}

// The judge can find each fault that it looks for.
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
		"nothing":                                {nil, judgement{}},
		"the first cycle is for the bound alone": {evenly(7, func(int, *decided) {}), judgement{most: 10}},
		"all is well":                            {append(evenly(7, owner), evenly(8, owner)...), judgement{most: 10, cycles: 1, could: 10, used: 10, within: 5}},
		"an owner is refused who asks evenly": {
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
