package limit

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // The machine may have no tables of time zones.

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/calendar"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/internal/limit/twin"
	"github.com/headgate/headgate/internal/testkit/race"
)

// calendarKey is one key that counts in windows of the calendar, with its twin.
type calendarKey struct {
	t     *testing.T
	plan  *Plan
	cell  Cell
	ended Ended
	twin  *twin.Calendar
}

func newCalendarKey(t *testing.T, policy headgate.Policy) *calendarKey {
	t.Helper()
	return &calendarKey{t: t, plan: mustCompile(t, policy), twin: twin.NewCalendar(policy)}
}

// change sets another policy with the same unit.
func (k *calendarKey) change(policy headgate.Policy) {
	k.t.Helper()
	k.plan, k.twin.Policy = mustCompile(k.t, policy), policy
}

// do decides a request on the cell, and compares the decision with the twin.
func (k *calendarKey) do(e *headgate.Edges, now headgate.Instant, cost int64, mode headgate.OpKind) headgate.Decision {
	k.t.Helper()
	if err := k.plan.CheckEdges(e, now); err != nil {
		k.t.Fatal(err)
	}
	draw := Draw{Edges: e, Ended: k.ended}
	var d headgate.Decision
	given := false
	if mode == headgate.Refund {
		_, given = k.plan.RefundCell(&k.cell, k.plan, now, cost, &draw)
		k.ended = draw.Ended
	}
	asked, at := cost, &k.cell
	if mode == headgate.Refund {
		looked := k.cell
		asked, at = 0, &looked
	}
	if !given { // Otherwise the draw is the look at the count.
		k.plan.JudgeCell(at, now, asked, headgate.Take, &draw)
	}
	if mode == headgate.Take && draw.EndedChanged() {
		k.ended = draw.Ended
	}
	k.plan.Explain(&draw, &d)
	if mode == headgate.Refund {
		SettleRefund(&d, 0)
	} else if mode == headgate.Take && (d.Verdict == headgate.Allow || k.plan.CountsRefused(d.Reason != headgate.Never)) {
		k.plan.TakeCell(&k.cell, &draw)
		k.plan.Receipt(&draw, &d.Receipt)
	}
	want := k.twin.Do(e, now, cost, mode)
	if d.Verdict != want.Verdict || d.Reason != want.Reason || d.Remaining != want.Remaining {
		k.t.Fatalf("at %s: cost %d of kind %d gives %s %s with %d left, the twin %+v",
			now.Time(), cost, mode, d.Verdict, d.Reason, d.Remaining, want)
	}
	return d
}

func perMonth(count int64) headgate.Policy {
	return headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: count, Calendar: headgate.Month}}
}

func inZone(t *testing.T, name string, monthStarts int) calendar.Settings {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return calendar.Settings{Zone: zone, WeekStarts: time.Monday, MonthStarts: monthStarts}
}

func date(t *testing.T, text string) headgate.Instant {
	t.Helper()
	at, err := time.Parse("2006-01-02 15:04", text)
	if err != nil {
		t.Fatal(err)
	}
	return headgate.Instant(at.UnixNano())
}

// line is one request of a story: its settings, and the expected decision.
type line struct {
	at       string // UTC
	settings calendar.Settings
	cost     int64
	verdict  headgate.Verdict
	left     int64
	ends     string // At + RetryAfter or ResetAfter: when the count ends, in UTC
}

// TestMonthsAsStories tells what happens to the count of a month.
func TestMonthsAsStories(t *testing.T) {
	utc, tokyo, mid, late := inZone(t, "UTC", 1), inZone(t, "Asia/Tokyo", 1), inZone(t, "UTC", 10), inZone(t, "UTC", 20)
	allow, deny := headgate.Allow, headgate.Deny
	for name, story := range map[string][]line{
		"a month is a month, whatever its length": {
			{"2026-01-31 23:59", utc, 3, allow, 2, "2026-02-01 00:00"},
			{"2026-02-01 00:00", utc, 5, allow, 0, "2026-03-01 00:00"},
			{"2026-02-28 23:59", utc, 1, deny, 0, "2026-03-01 00:00"},
			{"2026-03-01 00:00", utc, 5, allow, 0, "2026-04-01 00:00"},
		},
		"a change of the zone keeps the used units of the present month": {
			{"2026-03-15 00:00", utc, 3, allow, 2, "2026-04-01 00:00"},
			{"2026-03-16 00:00", tokyo, 2, allow, 0, "2026-03-31 15:00"},
			{"2026-03-31 14:59", tokyo, 1, deny, 0, "2026-03-31 15:00"},
			{"2026-03-31 15:00", tokyo, 1, allow, 4, "2026-04-30 15:00"},
		},
		"two zones in turns around an edge: each request counts what was used in the month of its own zone": {
			{"2026-03-31 14:00", tokyo, 5, allow, 0, "2026-03-31 15:00"},
			{"2026-03-31 14:30", utc, 1, deny, 0, "2026-04-01 00:00"},
			{"2026-03-31 15:00", tokyo, 3, allow, 2, "2026-04-30 15:00"}, // April begins in Tokyo.
			{"2026-03-31 15:01", utc, 1, deny, 0, "2026-04-01 00:00"},    // March in UTC, with 8 units.
			{"2026-03-31 15:02", tokyo, 1, allow, 1, "2026-04-30 15:00"},
			{"2026-04-01 00:00", utc, 4, allow, 1, "2026-05-01 00:00"}, // April begins in UTC.
			{"2026-04-01 00:01", tokyo, 1, deny, 0, "2026-04-30 15:00"},
			{"2026-04-30 15:00", utc, 1, allow, 0, "2026-05-01 00:00"},
			{"2026-04-30 15:01", tokyo, 1, deny, 0, "2026-05-31 15:00"}, // One of the 5 units is in its May, and the others may be.
			{"2026-05-01 00:00", utc, 5, allow, 0, "2026-06-01 00:00"},
		},
		"another first day counts what was used since that day": {
			{"2026-03-02 00:00", utc, 5, allow, 0, "2026-04-01 00:00"},
			{"2026-03-03 00:00", mid, 1, deny, 0, "2026-03-10 00:00"},
			{"2026-03-10 00:00", mid, 3, allow, 2, "2026-04-10 00:00"},
			{"2026-03-11 00:00", utc, 1, deny, 0, "2026-04-01 00:00"}, // 8 units of March.
			{"2026-03-20 00:00", late, 5, allow, 0, "2026-04-20 00:00"},
			{"2026-03-21 00:00", mid, 1, deny, 0, "2026-04-10 00:00"},
			{"2026-04-10 00:00", mid, 5, allow, 0, "2026-05-10 00:00"},
		},
		"settings that change to others and back": {
			{"2026-03-25 00:00", utc, 5, allow, 0, "2026-04-01 00:00"},
			{"2026-04-02 00:00", utc, 4, allow, 1, "2026-05-01 00:00"},
			{"2026-04-11 00:00", mid, 2, allow, 3, "2026-05-10 00:00"},
			{"2026-04-21 00:00", late, 1, allow, 4, "2026-05-20 00:00"},
			{"2026-04-22 00:00", utc, 1, deny, 0, "2026-05-01 00:00"}, // 7 units of April. The 5 of March are in one count with 4 of them.
			{"2026-04-22 00:01", mid, 3, deny, 2, "2026-05-10 00:00"},
			{"2026-04-22 00:02", late, 4, allow, 0, "2026-05-20 00:00"},
			{"2026-05-01 00:00", utc, 5, allow, 0, "2026-06-01 00:00"},
		},
		"a month that begins on another day counts units of the last day of the old one": {
			{"2026-11-30 12:00", utc, 5, allow, 0, "2026-12-01 00:00"},
			{"2026-12-02 00:00", utc, 2, allow, 3, "2027-01-01 00:00"},
			{"2026-12-15 00:00", inZone(t, "UTC", 29), 1, deny, 0, "2026-12-29 00:00"},
			{"2026-12-29 00:00", inZone(t, "UTC", 29), 5, allow, 0, "2027-01-29 00:00"},
		},
		"a clock that steps back over an edge stays in the newer month; after a longer step, the count moves": {
			{"2026-03-31 23:59", utc, 5, allow, 0, "2026-04-01 00:00"},
			{"2026-04-01 00:00", utc, 4, allow, 1, "2026-05-01 00:00"},
			{"2026-03-31 23:58", utc, 1, allow, 0, "2026-05-01 00:00"},
			{"2026-02-10 00:00", utc, 1, deny, 0, "2026-03-01 00:00"},
			{"2026-03-01 00:00", utc, 1, allow, 4, "2026-04-01 00:00"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newCalendarKey(t, perMonth(5))
			for i, r := range story {
				now := date(t, r.at)
				e := r.settings.Edges(headgate.Month, now.Time())
				d := k.do(&e, now, r.cost, headgate.Take)
				ends := now.Add(max(d.RetryAfter, d.ResetAfter))
				if d.Verdict != r.verdict || d.Remaining != r.left || ends != date(t, r.ends) {
					t.Fatalf("line %d, at %s: %s with %d left until %s, want %s with %d left until %s",
						i, r.at, d.Verdict, d.Remaining, ends.Time(), r.verdict, r.left, r.ends)
				}
			}
		})
	}
}

// TestCalendarVersionsInTurns runs two versions of a limit at once for ten years: with another
// zone, another first day, and other counts. No request makes the units of its own month more than
// its own count, and each month admits at least the smaller count.
func TestCalendarVersionsInTurns(t *testing.T) {
	const months = 120
	from := date(t, "2026-01-01 00:00")
	for starts := 1; starts <= calendar.LastMonthStart; starts += race.Fewer(3, 15) {
		for _, zone := range []string{"UTC", "Asia/Tokyo", "Pacific/Niue", "Pacific/Kiritimati"} {
			t.Run(zone+" "+strconv.Itoa(starts), func(t *testing.T) {
				r := rand.New(rand.NewPCG(uint64(starts), uint64(len(zone))))
				windows := [2]*calendar.Windows{
					calendar.New(inZone(t, "UTC", 1), headgate.Month), calendar.New(inZone(t, zone, starts), headgate.Month),
				}
				policies := [2]headgate.Policy{perMonth(20), perMonth(20 + r.Int64N(3)*5)}
				k, admitted := newCalendarKey(t, policies[0]), []headgate.Instant{}
				for now := from; now < date(t, "2036-01-01 00:00"); now = now.Add(time.Duration(1+r.Int64N(20)) * time.Hour) {
					v := r.IntN(2)
					k.change(policies[v])
					e := windows[v].Edges(now)
					if k.do(e, now, 1, headgate.Take).Verdict != headgate.Allow {
						continue
					}
					admitted = append(admitted, now)
					n, start := int64(0), e[PickWindow(e, now)]
					for i := len(admitted) - 1; i >= 0 && admitted[i] >= start; i-- {
						n++
					}
					if n > policies[v].Limit.Count {
						t.Fatalf("%d units since %s at %s, want at most %d", n, start.Time(), now.Time(), policies[v].Limit.Count)
					}
				}
				if least := (months - 1) * int(policies[0].Limit.Count); len(admitted) < least {
					t.Errorf("%d units in %d months, want at least %d", len(admitted), months, least)
				}
			})
		}
	}
}

// TestCalendarAsTwin runs random requests, refunds, changes and steps of the clock against the
// twin, in every unit.
func TestCalendarAsTwin(t *testing.T) {
	zones := []string{"UTC", "America/Santiago", "Pacific/Apia", "Asia/Gaza"}
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 7))
		unit := headgate.Day + headgate.CalendarUnit(r.IntN(4))
		pick := func() headgate.Policy {
			p := headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: r.Int64N(12), Calendar: unit}}
			p.CountRejected = r.IntN(3) == 0
			p.CountAll = p.CountRejected && r.IntN(2) == 0
			return p
		}
		settings := inZone(t, zones[r.IntN(len(zones))], 1+r.IntN(31))
		k, now := newCalendarKey(t, pick()), date(t, "2011-01-01 00:00")
		for range 400 {
			switch r.IntN(12) {
			case 0:
				k.change(pick())
			case 1:
				settings = inZone(t, zones[r.IntN(len(zones))], 1+r.IntN(31))
			case 2:
				now = now.Add(-time.Duration(r.Int64N(int64(LongestWindow(unit)))))
			default:
				now = now.Add(time.Duration(r.Int64N(int64(LongestWindow(unit)) / 20)))
			}
			e := settings.Edges(unit, now.Time())
			kind := []headgate.OpKind{headgate.Take, headgate.Take, headgate.Take, headgate.Refund}[r.IntN(4)]
			k.do(&e, now, r.Int64N(4), kind)
		}
	}
}

// TestCalendarReceipts: a receipt returns its units to the count in which they were taken, also
// under other settings, and to no other count.
func TestCalendarReceipts(t *testing.T) {
	utc, tokyo := inZone(t, "UTC", 1), inZone(t, "Asia/Tokyo", 1)
	k, march, april := newCalendarKey(t, perMonth(5)), date(t, "2026-03-20 00:00"), date(t, "2026-04-02 00:00")
	e := utc.Edges(headgate.Month, march.Time())
	r := k.do(&e, march, 3, headgate.Take).Receipt
	e = tokyo.Edges(headgate.Month, march.Time())
	k.do(&e, march, 1, headgate.Take)
	if !k.plan.ReturnCell(&k.cell, &k.ended, &r, march) || k.cell.Units != 1 {
		t.Errorf("after the return, the count is %d, want 1", k.cell.Units)
	}
	k = newCalendarKey(t, perMonth(5))
	r = k.do(&e, march, 3, headgate.Take).Receipt
	e = tokyo.Edges(headgate.Month, april.Time())
	k.do(&e, april, 2, headgate.Take)
	if k.ended[0].Units != 3 || !k.plan.ReturnCell(&k.cell, &k.ended, &r, april) || k.cell.Units != 2 || k.ended[0].Units != 0 {
		t.Errorf("after a return to March, April has %d and March %d units, want 2 and 0", k.cell.Units, k.ended[0].Units)
	}
	if may := date(t, "2026-05-02 00:00"); k.plan.ReturnCell(&k.cell, &k.ended, &r, may) {
		t.Error("units of March came back in May")
	}
}

// TestCheckEdges: a store clock outside the edges is an error that states the difference.
func TestCheckEdges(t *testing.T) {
	plan, now := mustCompile(t, perMonth(5)), date(t, "2026-03-20 00:00")
	e := inZone(t, "UTC", 1).Edges(headgate.Month, now.Time())
	for _, at := range []headgate.Instant{now, e[0], e[3] - 1} {
		if err := plan.CheckEdges(&e, at); err != nil {
			t.Errorf("at %s: %v", at.Time(), err)
		}
	}
	for _, at := range []headgate.Instant{e[0] - 1, e[3]} {
		if _, ok := errortype.As[*headgate.EdgeError](plan.CheckEdges(&e, at)); !ok {
			t.Errorf("at %s: no EdgeError", at.Time())
		}
	}
	long := headgate.Edges{e[0], e[1], e[2], e[2].Add(33 * day)}
	for _, bad := range []*headgate.Edges{nil, {}, {e[1], e[0], e[2], e[3]}, &long} {
		if err := plan.CheckEdges(bad, now); !errors.Is(err, headgate.ErrNoEdges) {
			t.Errorf("%v gives %v, want ErrNoEdges", bad, err)
		}
	}
	for i := range e {
		bad := e
		bad[i] += headgate.Instant(time.Microsecond)
		err := plan.CheckEdges(&bad, now)
		if !errors.Is(err, headgate.ErrNoEdges) || !strings.Contains(err.Error(), ":00.000001Z of a calendar window is not a whole second") {
			t.Errorf("edge %d with a fraction of a second gives %v", i, err)
		}
	}
	seconds := mustCompile(t, headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 1, Per: time.Second}})
	if err := seconds.CheckEdges(nil, now); err != nil {
		t.Errorf("a window of one second needs no edges: %v", err)
	}
}

// TestCalendarPolicies: only fixed_window has a calendar period, and without a length.
func TestCalendarPolicies(t *testing.T) {
	for want, p := range map[string]headgate.Policy{
		"limit: period is a month of the calendar, which token_bucket does not count in: use fixed_window, or a period with a length, such as 30d": {
			Limit: headgate.Limit{Count: 5, Calendar: headgate.Month},
		},
		"limit: period has the length 1s and is also a day: use only one of them": {
			Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 5, Per: time.Second, Calendar: headgate.Day},
		},
		"limit: period calendar(9) is not known: use day, week, month or year": {
			Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 5, Calendar: 9},
		},
		"limit: count -1 is out of range: use 0 to 9007199254740991": perMonth(-1),
	} {
		if _, err := Compile(p); err == nil || err.Error() != want {
			t.Errorf("Compile gives %v, want %s", err, want)
		}
	}
}
