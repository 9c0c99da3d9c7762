package leases

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// Bars for 50,000 holders with 10,000 reports a second.
const (
	mostCores = 1.0
	mostP99   = 20 * time.Millisecond
	mostBytes = 20 << 10
	mostRatio = 1.3
)

// Quick is a small size, to check that the benchmark works.
func Quick() Size {
	return Size{
		Streams: 5, PerStream: 10, Resources: 2, Every: 500 * time.Millisecond, Length: 4 * time.Second,
		Rounds: 1, Warm: 100 * time.Millisecond, Measure: 300 * time.Millisecond,
	}
}

var errMissed = errors.New("a bar is missed")

// Judge writes the medians over the rounds, and returns an error if a bar is missed. The ratio to the echo is computed in each round.
func Judge(all []Figure, to io.Writer) (err error) {
	for _, side := range []string{Steady, Drifting} {
		var cores, p99, bytes, ratio []float64
		var bare float64
		for _, f := range all {
			switch f.Side {
			case Echo:
				bare = f.Cores
			case side:
				cores, p99, bytes = append(cores, f.Cores), append(p99, float64(f.P99)), append(bytes, f.BytesPerHolder)
				ratio = append(ratio, f.Cores/bare)
			}
		}
		for _, b := range []struct {
			what string
			got  float64
			most float64
		}{
			{"cores", median(cores), mostCores},
			{"p99, ms", median(p99) / 1e6, float64(mostP99) / 1e6},
			{"KiB a holder", median(bytes) / 1024, mostBytes / 1024},
			{"cores / cores of the echo", median(ratio), mostRatio},
		} {
			verdict := "met"
			if b.got > b.most {
				verdict, err = "MISSED", errMissed
			}
			_, _ = fmt.Fprintf(to, "%-17s %-26s %8.3f, at most %5.1f: %s\n", side, b.what, b.got, b.most, verdict)
		}
	}
	return err
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}
