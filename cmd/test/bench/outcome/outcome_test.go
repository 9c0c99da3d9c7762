package outcome

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/flood"
	"github.com/headgate/headgate/cmd/test/bench/proxy"
)

func sample() *Outcome {
	result := func(name string, bar float64) contest.Result {
		ours, peer := []float64{10, 11, 12, 10, 11, 12}, []float64{20, 21, 22, 20, 21, 22}
		metered := contest.Compare("ours", "peer", peer, ours, 0)
		metered.Meter = "server CPU"
		return contest.Result{
			Name: name, About: "a test",
			Rows: []contest.Row{
				{
					Name: "ours", Kind: contest.Ours, Exact: true, Median: 11, Rounds: ours,
					Meters: []contest.Metered{{Name: "server CPU", Median: 3.4, Rounds: ours}},
				},
				{Name: "peer", Kind: contest.Peer, Median: 21, Rounds: peer, Allocs: 2, Failed: 0.5},
			},
			Ratios: []contest.Ratio{contest.Compare("ours", "peer", ours, peer, bar), metered, contest.Subtract("peer", "ours", peer, ours, 50*bar)},
		}
	}
	return &Outcome{
		Machine:  ThisMachine(),
		Effort:   contest.Effort{Rounds: 6, Slice: time.Second},
		Contests: []contest.Result{result("wide", 1), result("narrow", 0.1), result("reported", 0)},
		Flood:    []flood.Row{{Name: "peer", Keys: 7, HeapInuse: 1 << 20}},
		Proxies:  []proxy.Result{{Result: result("proxy", 0.5), Seen: []proxy.Seen{{Name: "ours", Rate: 1000}}}},
	}
}

func TestMissed(t *testing.T) {
	want := []string{"narrow: ours / peer", "narrow: peer − ours, ns"}
	if got := sample().Missed(); !slices.Equal(got, want) {
		t.Errorf("missed bars: got %q, want %q", got, want)
	}
}

func TestMarkdown(t *testing.T) {
	text := sample().Markdown()
	for _, want := range []string{
		"6 interleaved rounds of 1s per side", "The scenes of proxies have the bars of a machine with a processor of " + proxy.Bars(),
		"| wide | ours / peer | 0.524 | 0.500 – 0.545 (96.9 %) | ≤ 1 | met |",
		"| narrow | ours / peer | 0.524 | 0.500 – 0.545 (96.9 %) | ≤ 0.1 | MISSED |",
		"| proxy | ours / peer | 0.524 | 0.500 – 0.545 (96.9 %) | ≤ 0.5 | open |",
		"| wide | peer − ours, ns | 10.0 | 10.0 – 10.0 (96.9 %) | ≤ 50 | met |",
		"| peer (colliding keys share) | 21.0 | 20.0 – 22.0 | 2.00 | 50.00 % | 47619048 | – |",
		"| ours | 11.0 | 10.0 – 12.0 | 0 | 0 | 90909091 | 3 |",
		"| allocs | gave up | a second | server CPU, ns |",
		"| ours / peer, server CPU | 1.909 |",
		"| peer | 0 | 1.0 | 0.0 | 0 | 0.000 | 0.00 | **no** |",
		"| ours | 1000 | 0.00 | 0.00 | 0.0 |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "| reported | ours / peer | 0.524 | 0.500 – 0.545 (96.9 %) | ≤") {
		t.Error("the report judges a ratio that has no bar")
	}
}

func TestWrite(t *testing.T) {
	name, err := sample().Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var back Outcome
	if err := json.Unmarshal(text, &back); err != nil || len(back.Contests) != 3 || back.Proxies[0].Ratios[0].Median < 0.5 {
		t.Errorf("the JSON file: got %+v, error %v, want 3 contests and the proxy's ratio", back, err)
	}
	if _, err := os.Stat(name + ".md"); err != nil {
		t.Error(err)
	}
}
