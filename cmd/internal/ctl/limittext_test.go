package ctl

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
	"github.com/headgate/headgate/pace/etcd"
)

// noon is the current time of the tables in these tests.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.FixedZone("east", 3600)).Add(time.Hour)

// providers returns providers in different states.
func providers() []etcd.Entry {
	planned := func(limit int64, per time.Duration, instances int, from time.Duration) *etcd.PlanInfo {
		return &etcd.PlanInfo{Limit: limit, Per: per, Instances: instances, From: noon.Add(from), Revision: 1300}
	}
	members := func(n int) []etcd.Member { return make([]etcd.Member, n) }
	return []etcd.Entry{
		{
			Provider: "credit", Limit: etcd.Limit{Count: 10, Per: time.Minute, Balance: "demand"}, Revision: 9,
			Plan: planned(10, time.Minute, 3, -50*time.Hour), Members: members(3),
			Brake: &etcd.BrakeInfo{Until: noon.Add(30 * time.Second), Percent: 50, Reason: "429 Retry-After", By: "host-1"},
		},
		{
			Provider: "mail", Limit: etcd.Limit{Count: 50_000, Per: time.Second}, Revision: 18,
			Plan: planned(40_000, time.Second, 96, -time.Hour), Members: members(95),
		},
		{
			Provider: "push", Limit: etcd.Limit{Count: 0, Per: time.Second}, Revision: 3,
			Brake: &etcd.BrakeInfo{Until: noon, Percent: 50}, // This brake has expired.
		},
		{
			Provider: "sms\x1b[31m", Limit: etcd.Limit{Count: 7, Per: 24 * time.Hour, Balance: "\x1b[2J"}, Revision: 20,
			Plan: planned(7, 24*time.Hour, 1, 1500*time.Millisecond), Members: members(1),
		},
		{Provider: "sos", Revision: 4, Faults: []string{"sos/limit: no record"}, Plan: planned(1, time.Second, 2, -time.Hour)},
		{Provider: "void", Plan: planned(1, time.Second, 2, -time.Hour), Members: members(2)},
	}
}

func TestWriteLimits(t *testing.T) {
	var out bytes.Buffer
	if err := writeLimits(&out, providers(), noon); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	for i, want := range []string{
		"PROVIDER | LIMIT | BALANCE | REVISION | IN FORCE | INSTANCES | BRAKE",
		"credit | 10/1m | demand | 9 | since 2026-11-19T10:00:00Z | 3 | to 50% until 12:00:30Z: 429 Retry-After (by host-1)",
		"mail | 50000/1s | even | 18 | 40000/1s since 11:00:00Z | 95 (96 in the plan) | -",
		"push | 0/1s | even | 3 | no | 0 | -",
		`sms\x1b[31m | 7/1d | \x1b[2J | 20 | from 12:00:01.5Z | 1 | -`,
		"sos | not valid | - | 4 | 1/1s since 11:00:00Z | 0 (2 in the plan) | -",
		"void | - | - | 0 | 1/1s since 11:00:00Z | 2 | -",
	} {
		if got := cells(lines[i]); got != want {
			t.Errorf("line %d is\n%s\nwant\n%s", i+1, got, want)
		}
	}
	out.Reset()
	if err := writeLimits(&out, nil, noon); err != nil || !strings.HasPrefix(out.String(), "no provider has a limit: set one") {
		t.Errorf("without providers: %v, %s", err, out.String())
	}
}

// cells returns the cells of a table's line. Two or more spaces separate cells.
func cells(line string) string {
	var all []string
	for cell := range strings.SplitSeq(line, "  ") {
		if cell = strings.TrimSpace(cell); cell != "" {
			all = append(all, cell)
		}
	}
	return strings.Join(all, " | ")
}

// TestWriteProvider checks that the instances are listed in the order of the plan, each with
// its units.
func TestWriteProvider(t *testing.T) {
	e := providers()[1]
	e.Plan.Limit, e.Plan.From, e.Plan.Instances = 50_000, noon.Add(2*time.Second), 3
	e.Members = []etcd.Member{
		{ID: "a\x1b[2J", Index: -1, Demand: 0, Seen: noon.Add(-time.Hour)},
		{ID: "b", Index: 2, Demand: 5, Seen: noon.Add(1200 * time.Millisecond)},
		{ID: "c", Index: 0, Demand: 16_000, Seen: noon.Add(-812 * time.Millisecond)},
		{ID: "d", Index: 7},
	}
	var out bytes.Buffer
	if err := writeProvider(&out, &e, noon); err != nil {
		t.Fatal(err)
	}
	want := `mail: 50000/1s (even), revision 18
in force from 12:00:02Z (in 2s); instances: 4 (3 in the plan)

INDEX  PART         DEMAND  SEEN        ID
0      16666-16667  16000   800ms ago   c
2      16666-16667  5       1.2s ahead  b
7      -            0       -           d
joins  0            0       1h0m0s ago  a\x1b[2J
`
	if out.String() != want {
		t.Errorf("it prints\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	if err := writeProvider(&out, &providers()[2], noon); err != nil {
		t.Fatal(err)
	}
	want = "push: 0/1s (even), revision 3\nnot in force; instances: 0\nno instance is running: the limit takes effect when an instance starts\n"
	if out.String() != want {
		t.Errorf("it prints\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	e = etcd.Entry{Provider: "sos", Revision: 4, Faults: []string{"pace/etcd: sos\x1b[2J", strings.Repeat("x", 1000)}}
	if err := writeProvider(&out, &e, noon); err != nil {
		t.Fatal(err)
	}
	want = "sos: no valid limit, revision 4\nnot in force; instances: 0\nnot valid: sos\\x1b[2J\nnot valid: " + strings.Repeat("x", maxFault) +
		"\nno instance is running: the limit takes effect when an instance starts\n"
	if out.String() != want {
		t.Errorf("it prints\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	if err := writeProvider(&out, &providers()[0], noon); err != nil || !strings.Contains(out.String(), "\nbraked to 50% until 12:00:30Z: 429 Retry-After (by host-1)\n") {
		t.Errorf("the output for a provider with a brake is\n%s%v", out.String(), err)
	}
}

// TestPartText checks that a limit that divides evenly has one number, and others have two.
func TestPartText(t *testing.T) {
	for _, c := range []struct {
		limit     int64
		balance   etcd.Balance
		instances int
		want      string
	}{
		{96, etcd.Even, 96, "1"},
		{10, etcd.Even, 96, "0-1"},
		{0, "", 3, "0"},
		{1, "", 1, "1"},
		{96, "demand", 96, "-"},
		{-5, etcd.Even, 3, "-"},
		{5, etcd.Even, 0, "-"},
	} {
		e := etcd.Entry{Limit: etcd.Limit{Balance: c.balance}, Plan: &etcd.PlanInfo{Limit: c.limit, Per: time.Second, Instances: c.instances}}
		if got := partText(&e, 0); got != c.want {
			t.Errorf("%d over %d: %s, want %s", c.limit, c.instances, got, c.want)
		}
	}
	if got := partText(&etcd.Entry{}, 0); got != "-" {
		t.Errorf("without a plan: %s", got)
	}
}

// TestShowLimit checks the text and the JSON of a provider, and the error for an unknown provider.
func TestShowLimit(t *testing.T) {
	h := holding(mail(1), etcd.Entry{Provider: "void", Revision: 3, Faults: []string{"void/limit: no \u009b record"}})
	s, out, _ := h.session()
	ends(t, "unknown", out, s.show(t.Context(), "sms"), "", "sms has no limit: set one, like headgate ctl limit set sms 1000/s")
	s.json = true
	const one = `{"provider":"mail","limit":{"count":40000,"per":"1s","balance":"even","revision":17,"valid":true},` +
		`"plan":{"limit":40000,"per":"1s","instances":1,"from":"0001-01-01T00:00:00Z","revision":1234},"brake":null,` +
		`"members":[{"id":"host-0","index":0,"demand":0,"seen":"0001-01-01T00:00:00Z"}],"faults":[]}`
	ends(t, "one", out, s.show(t.Context(), "mail"), one+"\n", "")
	out.Reset()
	ends(t, "all", out, s.list(t.Context()),
		`{"limits":[`+one+`,{"provider":"void","limit":{"count":0,"per":"","balance":"","revision":3,"valid":false},`+
			`"plan":null,"brake":null,"members":[],"faults":["void/limit: no \u009b record"]}]}`+"\n", "")
	h.fault = errors.New("something")
	out.Reset()
	ends(t, "no etcd", out, s.list(t.Context()), "", "explained: something")
	ends(t, "no etcd", out, s.show(t.Context(), "mail"), "", "explained: something")
}

// TestLimitsOfWideNames checks that the limits are aligned after names with wide characters.
func TestLimitsOfWideNames(t *testing.T) {
	all := []etcd.Entry{{Provider: "漢字漢字漢字漢字"}, {Provider: "e\u0301te\u0301"}}
	for i := range all {
		all[i].Limit, all[i].Revision = etcd.Limit{Count: 7, Per: time.Second}, 1
	}
	var out bytes.Buffer
	if err := writeLimits(&out, all, noon); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		before, _, _ := strings.Cut(line, "7/1s")
		if n := terminal.Width().StringWidth(before); before != line && n != 18 {
			t.Errorf("the limit of %q starts in column %d, want 18", line, n)
		}
	}
}
