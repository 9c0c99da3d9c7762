package prom

import (
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/pace"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/pacers.txt")

// busy returns Stats in which every field has a value.
func busy(provider string) pace.Stats {
	s := pace.Stats{
		Provider: provider, Limit: 50_000, Per: 500 * time.Millisecond, Instances: 96, Index: 3, Part: 521, Revision: 17,
		Acquired: 1000, Waited: 900, TimedOut: 5, GivenUp: 6, TooMany: 7, TooLarge: 8, Faults: 9, Brakes: 2,
		Waiters: 11, Demand: 612, BrakedTo: 50, Lost: true, ClockOffset: -120 * time.Millisecond,
		WaitSum: 1500 * time.Millisecond, Waits: make([]uint64, len(pace.WaitBounds())+1),
	}
	for i := range s.Waits {
		s.Waits[i] = 2
	}
	return s
}

// metricsOf returns the text of a scrape of pacers.
func metricsOf(t *testing.T, all ...pace.Stats) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(Pacers(func() []pace.Stats { return all })); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	Handler(registry).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	if w.Code != http.StatusOK {
		t.Fatalf("got status %d: %s", w.Code, w.Body.String())
	}
	return w.Body.String()
}

// lacks fails the test for each line that is missing in a scrape.
func lacks(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, want := range lines {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("missing metric %s in:\n%s", want, text)
		}
	}
}

func TestPacers(t *testing.T) {
	calm := pace.Stats{Provider: "sms", Limit: 10, Per: time.Minute, Instances: 1, BrakedTo: 100}
	text := metricsOf(t, busy("mail"), calm)
	waits := 2 * (len(pace.WaitBounds()) + 1)
	lacks(t, text,
		`headgate_pace_limit{provider="mail"} 50000`, `headgate_pace_window_seconds{provider="mail"} 0.5`,
		`headgate_pace_instances{provider="mail"} 96`, `headgate_pace_part{provider="mail"} 521`,
		`headgate_pace_acquired_total{provider="mail"} 1000`, `headgate_pace_waited_total{provider="mail"} 900`,
		`headgate_pace_timed_out_total{provider="mail"} 5`, `headgate_pace_given_up_total{provider="mail"} 6`,
		`headgate_pace_refused_total{provider="mail",reason="too_many_waiters"} 7`,
		`headgate_pace_refused_total{provider="mail",reason="too_large"} 8`,
		`headgate_pace_waiters{provider="mail"} 11`, `headgate_pace_demand{provider="mail"} 612`,
		`headgate_pace_revision{provider="mail"} 17`, `headgate_pace_clock_offset_seconds{provider="mail"} -0.12`,
		`headgate_pace_faults_total{provider="mail"} 9`, `headgate_pace_brakes_total{provider="mail"} 2`,
		`headgate_pace_braked_percent{provider="mail"} 50`, `headgate_pace_lost{provider="mail"} 1`,
		`headgate_pace_wait_seconds_sum{provider="mail"} 1.5`,
		fmt.Sprintf(`headgate_pace_wait_seconds_count{provider="mail"} %d`, waits),
		fmt.Sprintf(`headgate_pace_wait_seconds_bucket{provider="mail",le="+Inf"} %d`, waits),
		`headgate_pace_limit{provider="sms"} 10`, `headgate_pace_window_seconds{provider="sms"} 60`,
		`headgate_pace_braked_percent{provider="sms"} 100`, `headgate_pace_lost{provider="sms"} 0`,
		`headgate_pace_wait_seconds_count{provider="sms"} 0`,
	)
}

// TestPacersRegistry checks that one registry can have pacers and other metrics. A
// program without pacers shows none until it makes one.
func TestPacersRegistry(t *testing.T) {
	counted := report.New(report.Config{})
	defer counted.Close()
	registry, err := NewRegistry(Config{Report: counted})
	if err != nil {
		t.Fatal(err)
	}
	var all []pace.Stats
	if err := registry.Register(Pacers(func() []pace.Stats { return all })); err != nil {
		t.Fatal(err)
	}
	for want := range 2 {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for _, f := range families {
			if f.GetName() == "headgate_pace_limit" {
				got++
			}
		}
		if got != want {
			t.Errorf("%d pacers: got %d series", want, got)
		}
		all = append(all, busy("mail"))
	}
}

// TestPacersHistogram checks that counts by class become counts up to each bound. Waits
// beyond all bounds are only in the total count. A pacer with fewer or more classes does
// not make the scrape fail.
func TestPacersHistogram(t *testing.T) {
	desc := prometheus.NewDesc("waits", "Waits.", []string{"provider"}, nil)
	bounds := []time.Duration{time.Millisecond, 10 * time.Millisecond, time.Second}
	for _, c := range []struct {
		waits []uint64
		want  string
	}{
		{[]uint64{5, 0, 2, 1}, "0.001:5 0.01:5 1:7 of 8"},
		{nil, "0.001:0 0.01:0 1:0 of 0"},
		{[]uint64{4}, "0.001:4 0.01:4 1:4 of 4"},
		{[]uint64{1, 1, 1, 1, 1}, "0.001:1 0.01:2 1:3 of 5"},
	} {
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(constant{waitsOf(desc, &pace.Stats{Waits: c.waits}, bounds)})
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		h := families[0].GetMetric()[0].GetHistogram()
		var got strings.Builder
		for _, b := range h.GetBucket() {
			fmt.Fprintf(&got, "%v:%d ", b.GetUpperBound(), b.GetCumulativeCount())
		}
		fmt.Fprintf(&got, "of %d", h.GetSampleCount())
		if got.String() != c.want {
			t.Errorf("counts %v: got %s, want %s", c.waits, got.String(), c.want)
		}
	}
}

// constant is a collector of one metric.
type constant struct{ metric prometheus.Metric }

func (c constant) Describe(ch chan<- *prometheus.Desc) { ch <- c.metric.Desc() }
func (c constant) Collect(ch chan<- prometheus.Metric) { ch <- c.metric }

// TestPacersNames checks that a scrape succeeds with any provider name, and that its
// labels are readable.
func TestPacersNames(t *testing.T) {
	long := strings.Repeat("ü", 100)
	text := metricsOf(t, busy("quoted \"name\"\\\n"), busy("\xff"), busy(""), busy(long))
	lacks(t, text,
		`headgate_pace_part{provider="quoted \"name\"\\\n"} 521`, `headgate_pace_part{provider="\"\\xff\""} 521`,
		`headgate_pace_part{provider=""} 521`, `headgate_pace_part{provider="`+strings.Repeat("ü", 64)+`"} 521`,
	)
	for i := range 8 {
		name := strings.Repeat("x", i) + long
		if got := providerLabel(name); !utf8.ValidString(got) || len(got) > maxProviderName || len(got) < maxProviderName-1 {
			t.Errorf("provider %q: got label %q", name, got)
		}
	}
}

// TestPacersTogether checks that two pacers of one provider become one series of each
// metric, in either order. Counts are added up, the plan is the newer one, and the worse
// state is kept.
func TestPacersTogether(t *testing.T) {
	other := busy("mail")
	other.Limit, other.Revision, other.Instances, other.Per = 60_000, 18, 97, time.Second
	other.BrakedTo, other.Lost, other.ClockOffset = 100, false, 30*time.Millisecond
	one := busy("mail")
	one.Waits = one.Waits[:0]
	for _, all := range [][]pace.Stats{{one, other}, {other, one}} {
		before := fmt.Sprint(all)
		text := metricsOf(t, all...)
		lacks(t, text,
			`headgate_pace_limit{provider="mail"} 60000`, `headgate_pace_revision{provider="mail"} 18`,
			`headgate_pace_instances{provider="mail"} 97`, `headgate_pace_window_seconds{provider="mail"} 1`,
			`headgate_pace_part{provider="mail"} 1042`, `headgate_pace_acquired_total{provider="mail"} 2000`,
			`headgate_pace_waited_total{provider="mail"} 1800`, `headgate_pace_timed_out_total{provider="mail"} 10`,
			`headgate_pace_given_up_total{provider="mail"} 12`, `headgate_pace_faults_total{provider="mail"} 18`,
			`headgate_pace_brakes_total{provider="mail"} 4`, `headgate_pace_waiters{provider="mail"} 22`,
			`headgate_pace_demand{provider="mail"} 1224`, `headgate_pace_wait_seconds_sum{provider="mail"} 3`,
			`headgate_pace_refused_total{provider="mail",reason="too_many_waiters"} 14`,
			`headgate_pace_refused_total{provider="mail",reason="too_large"} 16`,
			`headgate_pace_braked_percent{provider="mail"} 50`, `headgate_pace_lost{provider="mail"} 1`,
			`headgate_pace_clock_offset_seconds{provider="mail"} -0.12`,
			fmt.Sprintf(`headgate_pace_wait_seconds_count{provider="mail"} %d`, len(other.Waits)*2),
		)
		if after := fmt.Sprint(all); after != before {
			t.Errorf("the scrape changed its input: got %s, before %s", after, before)
		}
	}
}

// TestPacersBound checks that all providers beyond the limit share one label, and that
// their counts are not lost.
func TestPacersBound(t *testing.T) {
	all := make([]pace.Stats, 0, maxProviders+50)
	for i := range maxProviders + 50 {
		all = append(all, pace.Stats{Provider: fmt.Sprintf("p%d", i), Acquired: 1})
	}
	for range 2 { // A provider may have the name others.
		merged := byProvider(all)
		sum := uint64(0)
		for _, s := range merged {
			sum += s.Acquired
		}
		last := merged[len(merged)-1]
		if len(merged) != maxProviders+1 || sum != uint64(len(all)) || last.Provider != otherProviders {
			t.Errorf("%d providers: got %d series, the last %q with %d units", len(all), len(merged), last.Provider, sum)
		}
		all = append(all, pace.Stats{Provider: otherProviders, Acquired: 1})
	}
}

// promtool accepts the names, types and help texts of the metrics.
func TestPacersPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatal("promtool is missing: install Debian's package prometheus, or run make deps")
	}
	check := exec.CommandContext(t.Context(), promtool, "check", "metrics")
	check.Stdin = strings.NewReader(metricsOf(t, busy("mail"), busy("s m\"s")))
	out := new(bytes.Buffer)
	check.Stdout, check.Stderr = out, out
	if err := check.Run(); err != nil || out.Len() > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

// TestPacersText compares a scrape with a file that the tests of package deploy use for
// dashboards and alerts. The flag -rewrite writes the file again.
func TestPacersText(t *testing.T) {
	const path = "testdata/pacers.txt"
	text := metricsOf(t, busy("mail"))
	if *rewrite {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || text != string(want) {
		t.Errorf("the metrics of pacers differ from %s (%v): run go test ./guard/report/prom -run TestPacersText -rewrite\n%s", path, err, text)
	}
}
