//go:build soak && unix

package limiter

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/testkit/race"
)

const (
	// besideVariable tells a child process what to allocate beside its work.
	besideVariable = "HEADGATE_TEST_BESIDE"
	besideNothing  = "nothing"
	besideLimiters = "four default limiters"
	// besideTables allocates tables on the heap, as an earlier version of four limiters did.
	besideTables = "four tables of 64 MiB on the heap"

	// liveObjects is the number of one-kilobyte objects that the child keeps.
	liveObjects = 96 << 10
	// turnovers is the number of times that the child replaces all objects.
	turnovers = 8
)

// work is the measured work of a child.
type work struct {
	Allocated float64       `json:"allocated"` // bytes
	CPU       time.Duration `json:"cpu"`       // processor time of the allocations; Wall is their elapsed time
	Wall      time.Duration `json:"wall"`
	GCShare   float64       `json:"gc_share"` // part of the used processor time
}

// speed returns bytes per second of processor time, which other processes do not affect.
func (w work) speed() float64 { return w.Allocated / w.CPU.Seconds() }

// TestSoakBesideWork runs a program that allocates as fast as it can under
// GOMEMLIMIT=400MiB. Beside four default limiters of one key each, it must keep 90 % of its
// speed. Beside tables on the heap it must not, which shows that the test can fail.
func TestSoakBesideWork(t *testing.T) {
	if race.On {
		t.Fatal("run without -race: under the race detector, tables are on the heap")
	}
	if beside := os.Getenv(besideVariable); beside != "" {
		child(t, beside)
		return
	}
	const rounds = 3
	kinds := []string{besideNothing, besideLimiters, besideTables}
	all := map[string][]work{}
	for range rounds {
		for _, kind := range kinds {
			all[kind] = append(all[kind], runChild(t, kind))
		}
	}
	ratios := map[string]float64{}
	for _, kind := range kinds {
		ratios[kind] = median(all[kind], func(i int, w work) float64 { return w.speed() / all[besideNothing][i].speed() })
		t.Logf("beside %s: %.3f of the speed by processor time, %.3f by the clock; %.2f GiB a second of processor time; GC has %.1f %% of it",
			kind, ratios[kind],
			median(all[kind], func(i int, w work) float64 {
				return w.Allocated / w.Wall.Seconds() / (all[besideNothing][i].Allocated / all[besideNothing][i].Wall.Seconds())
			}),
			median(all[kind], func(_ int, w work) float64 { return w.speed() })/(1<<30),
			100*median(all[kind], func(_ int, w work) float64 { return w.GCShare }))
	}
	if ratios[besideLimiters] < 0.9 {
		t.Errorf("beside limiters the program keeps %.3f of its speed, want at least 0.9", ratios[besideLimiters])
	}
	if ratios[besideTables] >= 0.9 {
		t.Errorf("beside tables on the heap the program keeps %.3f of its speed, want less than 0.9", ratios[besideTables])
	}
}

func median(all []work, rate func(i int, w work) float64) float64 {
	values := make([]float64, len(all))
	for i, w := range all {
		values[i] = rate(i, w)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// runChild runs this test in another process.
func runChild(t *testing.T, beside string) work {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSoakBesideWork$", "-test.count=1")
	command.Env = append(os.Environ(), besideVariable+"="+beside, "GOMEMLIMIT=400MiB", "GOGC=100")
	var out, failed bytes.Buffer
	command.Stdout, command.Stderr = &out, &failed
	if err := command.Run(); err != nil {
		t.Fatalf("%s: %v: %s%s", beside, err, out.String(), failed.String())
	}
	var w work
	if err := json.NewDecoder(&out).Decode(&w); err != nil {
		t.Fatal(err)
	}
	return w
}

// child replaces its live objects on every processor, and reports the time. The time does
// not include the first allocation of the objects.
func child(t *testing.T, beside string) {
	t.Helper()
	var kept []any
	for i := range 4 {
		switch beside {
		case besideLimiters:
			kept = append(kept, counted(t, i, Config{}))
		case besideTables:
			kept = append(kept, make([]byte, 64<<20))
		}
	}
	rings := make([][]*object, runtime.GOMAXPROCS(0))
	for i := range rings {
		rings[i] = make([]*object, liveObjects/len(rings))
		replace(rings[i])
	}
	var all sync.WaitGroup
	began, used := time.Now(), processorTime(t)
	for _, ring := range rings {
		all.Go(func() {
			for range turnovers {
				replace(ring)
			}
		})
	}
	all.Wait()
	w := work{Allocated: turnovers * liveObjects * 1024, CPU: processorTime(t) - used, Wall: time.Since(began), GCShare: gcShare()}
	runtime.KeepAlive(kept)
	if err := json.NewEncoder(os.Stdout).Encode(w); err != nil {
		t.Fatal(err)
	}
}

// processorTime returns the processor time that this process has used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// object has a size of one kilobyte, and a pointer that the collector follows.
type object struct {
	before *object
	_      [1016]byte
}

// replace allocates new objects for all entries of a ring.
func replace(ring []*object) {
	for i := range ring {
		ring[i] = new(object)
		if i%2 == 1 {
			ring[i].before = ring[i-1]
		}
	}
}

// gcShare returns the collector's part of the used processor time.
func gcShare() float64 {
	total, idle := readSeconds("/cpu/classes/total:cpu-seconds"), readSeconds("/cpu/classes/idle:cpu-seconds")
	return readSeconds("/cpu/classes/gc/total:cpu-seconds") / (total - idle)
}

func readSeconds(name string) float64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return sample[0].Value.Float64()
}
