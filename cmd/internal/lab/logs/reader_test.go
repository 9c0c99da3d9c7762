package logs_test

import (
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/lab/logs"
)

// kinds counts lines by their kinds.
type kinds [logs.SkipCount]int

// read returns the lines of a log by their kinds, and the number of the first malformed line.
func read(t *testing.T, r *logs.Reader) (counts kinds, malformed int64) {
	t.Helper()
	var l logs.Line
	for {
		switch err := r.Next(&l); {
		case errors.Is(err, io.EOF):
			return counts, malformed
		case err != nil:
			t.Fatal(err)
		}
		counts[l.Skip]++
		if l.Skip == logs.Malformed && malformed == 0 {
			malformed = l.Number
		}
	}
}

// TestRealTraffic reads 10,000 lines of a real server, one of which ends within a quoted text.
func TestRealTraffic(t *testing.T) {
	r, err := logs.Open("testdata/access.log.gz", logs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	counts, malformed := read(t, r)
	if want := (kinds{logs.Request: 9999, logs.Malformed: 1}); counts != want || malformed != 8899 {
		t.Errorf("%v with the malformed line %d, want %v with line 8899", counts, malformed, want)
	}
	if kind, unit := r.Kind().Name, r.Resolution(); kind != "combined" || unit != time.Second || r.HasDuration() {
		t.Errorf("the format is %s, to %v, durations %v", kind, unit, r.HasDuration())
	}
	if lacks := r.Unlogged(); !slices.Equal(lacks, []string{"host", "user_ip", "region"}) {
		t.Errorf("the log lacks %v", lacks)
	}
	if r.Read() != r.Size() || r.Size() == 0 {
		t.Errorf("%d bytes of %d were read", r.Read(), r.Size())
	}
}
