package reference

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// counters are the counters of all rules that are not 0, by name: the rule, a space and the counter.
type counters map[string]uint64

// readCounters reads the metrics of a server.
func readCounters(t *testing.T, url string) counters {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }() // It has been read.
	all, err := parseCounters(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// parseCounters reads lines like rule_total_hits{rule="shop.path_alpha"} 12.
func parseCounters(r io.Reader) (counters, error) {
	all := counters{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line, found := strings.CutPrefix(lines.Text(), "rule_")
		name, rest, labeled := strings.Cut(line, "{rule=")
		label, value, valued := strings.Cut(rest, "} ")
		if !found || !labeled || !valued {
			continue
		}
		rule, err := strconv.Unquote(label)
		if err != nil {
			return nil, fmt.Errorf("the label in %q: %w", line, err)
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("the value in %q: %w", line, err)
		}
		if n > 0 {
			all[rule+" "+name] = uint64(n)
		}
	}
	return all, lines.Err()
}

// flushTimeout bounds the wait until the counters have reached the metrics of the reference.
const flushTimeout = 20 * time.Second

// compareCounters returns the counters that differ between two servers, once the reference has written its
// counters.
func compareCounters(t *testing.T, ours, reference string, without string) (differences []string, compared int) {
	t.Helper()
	drop := func(name string, _ uint64) bool { return without != "" && strings.HasSuffix(name, without) }
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); ; <-tick.C {
		got, want := readCounters(t, ours), readCounters(t, reference)
		maps.DeleteFunc(got, drop)
		maps.DeleteFunc(want, drop)
		if maps.Equal(got, want) || time.Since(began) > flushTimeout {
			return counterDifferences(got, want), len(want)
		}
	}
}

func counterDifferences(ours, theirs counters) (differences []string) {
	names := maps.Clone(ours)
	maps.Copy(names, theirs)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if ours[name] != theirs[name] {
			differences = append(differences, fmt.Sprintf("counter %s: %d, want %d", name, ours[name], theirs[name]))
		}
	}
	return differences
}
