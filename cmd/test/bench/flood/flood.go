// Package flood sends each key to a limiter only once, for millions of keys. It measures
// the memory and the garbage collection of the process, and checks whether a key that was
// limited before the flood is still limited. Each limiter runs in its own process, because
// the garbage of another limiter would distort the result.
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

	"github.com/headgate/headgate/cmd/test/bench/contest"
	"github.com/headgate/headgate/cmd/test/bench/limiters"
)

// Row is the effect of the flood on one limiter.
type Row struct {
	Name string `json:"name"`
	Keys int    `json:"keys"`
	// PerKey is the time per key in nanoseconds, including the time to build the key.
	PerKey float64 `json:"ns_per_key"`
	// HeapInuse is the size of the heap after a full collection, in bytes.
	HeapInuse uint64 `json:"heap_inuse"`
	// PeakResident is the largest resident memory of the process, in bytes.
	PeakResident uint64 `json:"peak_resident"`
	// LongestPause is the longest time for which the collector stopped all goroutines.
	LongestPause time.Duration `json:"longest_pause_ns"`
	// CollectorCPU is the processor time of the collector in seconds, summed over all
	// processors.
	CollectorCPU float64 `json:"collector_cpu_s"`
	// FullCollection is the duration of a full collection after the flood.
	FullCollection time.Duration `json:"full_collection_ns"`
	// Kept means that the limited key was still limited after the flood.
	Kept bool `json:"kept"`
}

// keysAlone is the name of the side that only builds the keys.
const keysAlone = "keys alone"

// Names returns the names of all sides.
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

// room returns the memory of a bounded limiter: enough for a fifth of the keys.
func room(keys int) limiters.Room { return limiters.Room{Keys: max(keys/5, 1)} }

// limit returns a limit that one key can use up before the flood.
func limit() limiters.Limit {
	return limiters.Limit{Count: 10, Per: time.Hour, Burst: 10}
}

// Each measures each side in its own process. It runs program once for each side, with
// --flood-side; program prints the Row as JSON.
func Each(ctx context.Context, program string, keys int) ([]Row, error) {
	var rows []Row
	for _, name := range Names() {
		args := []string{"--flood-side", name, "--flood-keys", strconv.Itoa(keys)}
		process := exec.CommandContext(ctx, program, args...) //nolint:gosec // The caller passes its own executable.
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

// Measure floods the named side in the current process.
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
		return nil, fmt.Errorf("flood: unknown side %q: choose one of %s", name, strings.Join(Names(), ", "))
	}
	return all[i].New(limit(), room(keys))
}

// readCollector runs one more collection, and fills in the statistics of the collector.
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

// peakResident returns the largest resident memory of the process, in bytes.
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
	return 0, fmt.Errorf("flood: /proc/self/status has no line VmHWM: run on Linux")
}

// noLimiter decides without a lookup, to measure the cost of the keys alone.
type noLimiter struct{}

// Take denies all requests.
func (noLimiter) Take(_ []string, _, n int) contest.Tally { return contest.Tally{Denied: n} }

// Close does nothing.
func (noLimiter) Close() {}
