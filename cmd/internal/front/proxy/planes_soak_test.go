//go:build soak

package proxy

import (
	"bufio"
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestSoakPlanesSplits splits each conversation of the corpus and each answer at every offset.
func TestSoakPlanesSplits(t *testing.T) {
	t.Run("requests", func(t *testing.T) { sendSplits(t, 1) })
	t.Run("answers", func(t *testing.T) { sendAnswerSplits(t, 1) })
}

// soakConnections returns the number of connections of a soak test. SOAK_CONNECTIONS replaces it.
func soakConnections(t *testing.T, usual int64) int64 {
	t.Helper()
	text, found := os.LookupEnv("SOAK_CONNECTIONS")
	if !found {
		return usual
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestSoakFuzzPlanes runs FuzzPlanes with coverage guidance. The inputs that reach new code are
// kept in the fuzzing cache of go test, and are the start of the next run.
func TestSoakFuzzPlanes(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-run=^$", "-fuzz=^FuzzPlanes$", "-fuzzminimizetime=1x",
		"-fuzztime="+strconv.FormatInt(soakConnections(t, 300_000), 10)+"x", ".")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if n := time.Now().Second(); n < 3 || !strings.HasPrefix(lines.Text(), "fuzz: elapsed") { // A line each minute.
			t.Log(lines.Text())
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestSoakPlanes sends ten million connections to both planes. Half of them are random, and half
// are mutations of the inputs that TestSoakFuzzPlanes has kept.
func TestSoakPlanes(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	var sent, decided, fast atomic.Int64
	total, kept := soakConnections(t, 10_000_000), keptInputs(t)
	done := make(chan struct{})
	defer close(done)
	go reportSent(t, &sent, done)
	t.Run("", func(t *testing.T) {
		sharded(t, func(t *testing.T, shard, _ int) {
			t.Helper()
			p, odd, random := newPair(t, planeSetup{}), corpus(), rand.New(rand.NewPCG(uint64(shard), 5))
			defer p.stop()
			for sent.Add(1) <= total {
				data := randomBytes(random)
				if len(kept) > 0 && random.IntN(2) == 0 {
					data = mutated(random, kept, data)
				}
				c, _ := (&choices{data}).generated(odd)
				standard, other := p.converse(c)
				if found := difference(standard, other); found != "" {
					t.Error(c.describe() + found)
				}
				decided.Add(int64(len(standard.verdicts)))
			}
			fast.Add(p.fastRequests())
		})
	})
	t.Logf("%d requests were decided, %d took the fast path", decided.Load(), fast.Load())
}

// reportSent logs the number of connections each half minute.
func reportSent(t *testing.T, sent *atomic.Int64, done <-chan struct{}) {
	t.Helper()
	const every = 30 * time.Second
	tick := time.NewTicker(every)
	defer tick.Stop()
	for last := int64(0); ; {
		select {
		case <-done:
			return
		case <-tick.C:
			now := sent.Load()
			t.Logf("%d connections, %d/s", now, (now-last)/int64(every/time.Second))
			last = now
		}
	}
}

// keptInputs returns the inputs in the fuzzing cache of go test.
func keptInputs(t *testing.T) (kept [][]byte) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	const cache = "/fuzz/github.com/headgate/headgate/cmd/internal/front/proxy/FuzzPlanes/*"
	files, err := filepath.Glob(strings.TrimSpace(string(out)) + cache)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, quoted, _ := strings.Cut(string(text), "[]byte(")
		if data, err := strconv.Unquote(strings.TrimSuffix(strings.TrimSpace(quoted), ")")); err == nil {
			kept = append(kept, []byte(data))
		}
	}
	t.Logf("%d inputs were kept", len(kept))
	return kept
}

// mutated returns a kept input with some other bytes, or with the end of another input.
func mutated(random *rand.Rand, kept [][]byte, fresh []byte) []byte {
	data := bytes.Clone(kept[random.IntN(len(kept))])
	if len(data) == 0 {
		return fresh
	}
	if random.IntN(4) == 0 {
		other := kept[random.IntN(len(kept))]
		data = append(data[:random.IntN(len(data))], other[random.IntN(len(other)+1):]...)
	}
	for i := range random.IntN(4) {
		if len(data) > 0 {
			data[random.IntN(len(data))] = fresh[i]
		}
	}
	return data
}
