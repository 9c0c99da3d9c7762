//go:build soak

package acceptance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestSoakOwnersAreIsolated checks the bars over a hundred thousand requests of owners: at most
// 1 in 10,000 within its share is refused, and 98 % of the capacity is used.
func TestSoakOwnersAreIsolated(t *testing.T) {
	for _, c := range []isolation{
		{owners: 3, flood: 10_000, reclaim: "at_once", cycles: 90},
		{owners: 199, flood: 200, reclaim: "at_once", cycles: 70},
		{owners: 199, flood: 5000, reclaim: "at_once", cycles: 70},
		{owners: 3, flood: 10_000, reclaim: "next_cycle", cycles: 30},
	} {
		t.Run(c.String(), func(t *testing.T) {
			busy(t)
			j, l := c.run(t)
			t.Logf("owners: p50 %v, p99 %v", quantile(l.streams[0].late, 0.5), quantile(l.streams[0].late, 0.99))
			if c.reclaim != "at_once" {
				return
			}
			if j.within < 100_000 || j.stalled*10 > j.cycles {
				t.Errorf("%d requests of owners in %d cycles, %d cycles with a stalled machine: want 100,000, and at most a tenth",
					j.within, j.cycles, j.stalled)
			}
			if j.refusals()*10_000 > j.within || float64(j.used) < 0.98*float64(j.could) {
				t.Errorf("want at most 1 in 10,000 of the owners' requests refused, and 0.98 used: %v", j)
			}
		})
	}
}

// bareRefuser is a program that only answers 429: the least cost of a flood.
const bareRefuser = `package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
)

func main() {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(ln.Addr())
	_ = http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
	}))
}
`

// startBareRefuser gives the address of a started bareRefuser.
func startBareRefuser(t *testing.T) (address string) {
	t.Helper()
	source := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(source, []byte(bareRefuser), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(filepath.Dir(source), "refuser")
	if out, err := exec.Command("go", "build", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	command := exec.Command(program)
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	if _, err := fmt.Fscan(out, &address); err != nil {
		t.Fatal(err)
	}
	return address
}

// TestSoakOwnersLatency compares the owners' latency, measured from the due times, with a
// control under equal load. In the control, a plain handler of net/http in its own process
// refuses the flood. The two run in turns, and the medians of their p99 are compared.
func TestSoakOwnersLatency(t *testing.T) {
	const rounds, most = 5, 1.2
	refuser := startBareRefuser(t)
	for _, c := range []isolation{
		{owners: 3, flood: 10_000, reclaim: "at_once", cycles: 8},
		{owners: 199, flood: 5000, reclaim: "at_once", cycles: 8},
	} {
		t.Run(c.String(), func(t *testing.T) {
			busy(t)
			var ours, control []time.Duration
			var ratios []float64
			for round := range rounds {
				var with, without time.Duration
				if round%2 == 0 {
					with, without = c.latency(t, ""), c.latency(t, refuser)
				} else {
					without, with = c.latency(t, refuser), c.latency(t, "")
				}
				ours, control, ratios = append(ours, with), append(control, without), append(ratios, float64(with)/float64(without))
				t.Logf("p99 is %v, and %v in the control: %.3f times", with, without, ratios[round])
			}
			slices.Sort(ours)
			slices.Sort(control)
			slices.Sort(ratios)
			ratio := float64(ours[rounds/2]) / float64(control[rounds/2])
			t.Logf("the medians are %v and %v: %.3f times; the median of the ratios is %.3f", ours[rounds/2], control[rounds/2], ratio, ratios[rounds/2])
			if ratio > most {
				t.Errorf("the owners' p99 is %.3f times that of the control, want at most %v", ratio, most)
			}
		})
	}
}

// latency gives the owners' p99. If an address is given, the flood goes there. There is no
// access log, because it would cost the side with more decisions more time.
func (c isolation) latency(t *testing.T, refuser string) time.Duration {
	t.Helper()
	upstream := &counted{}
	i := startReconfigured(t, c.settings(), upstream)
	if refuser == "" {
		refuser = i.Proxy
	}
	l := c.load(i.Proxy, refuser)
	l.run(t)
	i.stop()
	all, refused := l.answered(t)
	want := (c.flood + 0.8*float64(c.owners*c.fair())) * float64(c.cycles)
	t.Logf("%d requests of %.0f, %d refused", all, want, refused)
	if float64(all) < 0.98*want {
		t.Errorf("%d requests were sent of %.0f: the machine is too slow, and says nothing", all, want)
	}
	return quantile(l.streams[0].late, 0.99)
}
