//go:build soak

package redis_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/prefetch"
	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// Environment variables of a process of the test.
const (
	processOf   = "HEADGATE_TEST_REDIS"
	processOut  = "HEADGATE_TEST_OUT"
	processHold = "HEADGATE_TEST_HOLD"
)

// hundredThousand is the limit that the processes share.
func hundredThousand(hold time.Duration) headgate.Policy {
	return headgate.Policy{Algorithm: headgate.FixedWindow, Limit: headgate.Limit{Count: 100_000, Per: time.Second}, Hold: hold}
}

// TestSoakProcess is one of the processes of TestSoakHundredThousand. Without that test, it does
// nothing.
func TestSoakProcess(t *testing.T) {
	addr := os.Getenv(processOf)
	if addr == "" {
		return
	}
	hold, err := time.ParseDuration(os.Getenv(processHold))
	if err != nil {
		t.Fatal(err)
	}
	source := newStore(t, addr, nil)
	store, err := prefetch.New(prefetch.Config{Source: source, MaxKeys: 100})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	id := prepare(t, store, hundredThousand(hold))
	out, err := os.Create(os.Getenv(processOut))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	var mu sync.Mutex
	w := bufio.NewWriter(out)
	end := time.Now().Add(6 * time.Second)
	var all sync.WaitGroup
	for range 48 {
		all.Go(func() {
			for time.Now().Before(end) {
				d, err := take(store, id, "all", 2*time.Second)
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
					return
				}
				if err == nil && d.Verdict == headgate.Allow {
					mu.Lock()
					_ = binary.Write(w, binary.LittleEndian, int64(d.At))
					mu.Unlock()
					continue
				}
				time.Sleep(time.Millisecond) //nolint:forbidigo // sleep: a refused caller frees the processor for others
			}
		})
	}
	all.Wait()
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
}

// TestSoakHundredThousand: eight processes take single units of one limit of 100,000 a second.
// By the server's clock, no window has more units. With prefetch, nearly the whole limit is
// used. Without prefetch, two processors decide fewer requests. The hold is 50 ms, because one of
// eight processes on two processors can pause for longer than the default hold of 5 ms.
func TestSoakHundredThousand(t *testing.T) {
	for hold, least := range map[time.Duration]float64{0: 0.3, 50 * time.Millisecond: 0.99} {
		t.Run(fmt.Sprint("hold ", hold), func(t *testing.T) {
			server := testserver.Start(t)
			var all sync.WaitGroup
			var files []string
			for i := range 8 {
				file := filepath.Join(t.TempDir(), strconv.Itoa(i))
				files = append(files, file)
				one := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestSoakProcess$")
				one.Env = append(os.Environ(), processOf+"="+server.Addr, processOut+"="+file, processHold+"="+hold.String())
				all.Go(func() {
					if output, err := one.CombinedOutput(); err != nil {
						t.Errorf("%v\n%s", err, output)
					}
				})
			}
			all.Wait()
			judge(t, files, least)
		})
	}
}

// judge counts the units of each window of the server's clock. The load did not cover the whole
// first and last window.
func judge(t *testing.T, files []string, least float64) {
	t.Helper()
	windows := map[int64]int{}
	for _, file := range files {
		in, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		for r := bufio.NewReader(in); ; {
			var at int64
			if err := binary.Read(r, binary.LittleEndian, &at); err != nil {
				if !errors.Is(err, io.EOF) {
					t.Error(err)
				}
				break
			}
			windows[at/int64(time.Second)]++
		}
		in.Close()
	}
	var starts []int64
	for start, n := range windows {
		starts = append(starts, start)
		if n > 100_000 {
			t.Errorf("%d units in the window of second %d, want at most 100000", n, start)
		}
	}
	slices.Sort(starts)
	used, complete := 0, starts[2:len(starts)-1]
	for _, start := range complete {
		used += windows[start]
	}
	share := float64(used) / float64(100_000*len(complete))
	t.Logf("%.4f of the limit was used in %d complete windows", share, len(complete))
	if share < least {
		t.Errorf("%.4f of the limit was used, want at least %.2f", share, least)
	}
}
