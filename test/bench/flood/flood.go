// Package flood measures what a flood of keys that are never seen again does to
// the memory and the collector of a process, and whether a key that was limited
// before stays limited. Each limiter gets a process of its own: nothing of another
// is collected at its expense.
package flood

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/test/bench/contest"
	"github.com/headgate/headgate/test/bench/limiters"
)

// Row is what the flood did to one limiter.
type Row struct {
	Name string `json:"name"`
	Keys int    `json:"keys"`
	// PerKey is in nanoseconds, the making of the key included.
	PerKey float64 `json:"ns_per_key"`
	// HeapInuse is what is left after a full collection, in bytes.
	HeapInuse uint64 `json:"heap_inuse"`
	// PeakResident is the most memory that the process had.
	PeakResident uint64 `json:"peak_resident"`
	// LongestPause is the longest time that the collector stopped the world for.
	LongestPause time.Duration `json:"longest_pause_ns"`
	// CollectorCPU is in seconds, of all processors together.
	CollectorCPU float64 `json:"collector_cpu_s"`
	// FullCollection is how long one takes after the flood.
	FullCollection time.Duration `json:"full_collection_ns"`
	// Kept says that the limited key was still limited after the flood.
	Kept bool `json:"kept"`
}

// keysAlone is the side that only makes the keys.
const keysAlone = "keys alone"

// Names lists the sides.
func Names() []string {
	names := []string{keysAlone}
	for _, m := range makers() {
		names = append(names, m.Name)
	}
	return names
}

func makers() []limiters.KeyedMaker {
	return append(limiters.KeyedLimiters(), limiters.ThrottledBounded())
}

// room is that of a limiter whose memory is bounded: a fifth of the flood fits.
func room(keys int) limiters.Room { return limiters.Room{Keys: max(keys/5, 1)} }

// limit is small enough to be used up before the flood.
func limit() limiters.Limit {
	return limiters.Limit{Count: 10, Per: time.Hour, Burst: 10}
}

// Each measures every side in a process of its own: program, asked for one side,
// prints its Row as JSON.
func Each(ctx context.Context, program string, keys int) ([]Row, error) {
	var rows []Row
	for _, name := range Names() {
		args := []string{"--flood-side", name, "--flood-keys", strconv.Itoa(keys)}
		process := exec.CommandContext(ctx, program, args...) //nolint:gosec // the caller's own program
		process.Stderr = os.Stderr
		output, err := process.Output()
		if err != nil {
			return nil, fmt.Errorf("flood: %s: %w", name, err)
		}
		var row Row
		if err := json.Unmarshal(output, &row); err != nil {
			return nil, fmt.Errorf("flood: %s: %w", name, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// Measure floods one side in this process.
func Measure(name string, keys int) (Row, error) {
	limiter, err := find(name, keys)
	if err != nil {
		return Row{}, err
	}
	defer limiter.Close()
	limited := []string{"limited"}
	limiter.Take(limited, 0, limit().Burst)

	start := time.Now()
	one := make([]string, 1)
	for i := range keys {
		one[0] = "flood-" + strconv.Itoa(1e9+i)
		limiter.Take(one, 0, 1)
	}
	took := time.Since(start)

	row := Row{
		Name: name, Keys: keys,
		PerKey: float64(took.Nanoseconds()) / float64(keys),
		Kept:   limiter.Take(limited, 0, 1).Denied == 1,
	}
	row.readCollector()
	runtime.KeepAlive(limiter)
	row.PeakResident, err = peakResident()
	return row, err
}

func find(name string, keys int) (limiters.Keyed, error) {
	if name == keysAlone {
		return noLimiter{}, nil
	}
	all := makers()
	i := slices.IndexFunc(all, func(m limiters.KeyedMaker) bool { return m.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("flood: there is no side %q: choose from %s", name, strings.Join(Names(), ", "))
	}
	return all[i].New(limit(), room(keys))
}

// readCollector fills in what the collector has done so far, and one collection more.
func (r *Row) readCollector() {
	start := time.Now()
	runtime.GC()
	r.FullCollection = time.Since(start)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r.HeapInuse = m.HeapInuse
	for _, pause := range &m.PauseNs {
		r.LongestPause = max(r.LongestPause, time.Duration(pause))
	}
	cpu := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}}
	metrics.Read(cpu)
	if cpu[0].Value.Kind() == metrics.KindFloat64 {
		r.CollectorCPU = cpu[0].Value.Float64()
	}
}

// peakResident reads the process's high-water mark.
func peakResident() (uint64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseUint(strings.Fields(rest)[0], 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("flood: /proc/self/status has no VmHWM")
}

// noLimiter answers without looking, so that what the keys cost is known.
type noLimiter struct{}

// Take denies everything.
func (noLimiter) Take(_ []string, _, n int) contest.Tally { return contest.Tally{Denied: n} }

// Close does nothing.
func (noLimiter) Close() {}
