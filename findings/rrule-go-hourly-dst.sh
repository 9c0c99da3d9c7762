#!/bin/bash
# Product: github.com/teambition/rrule-go v1.8.2, FREQ=HOURLY, America/New_York.
# Guess:   HOURLY gives one time an hour: 25 on the day with 25 hours, 23 on the
#          day with 23 hours, each one hour after the one before.
# Happens: 24 on both days. In autumn the repeated hour has no occurrence, so one
#          gap is 2 h. In spring 01:00 EST comes twice: for itself and for the
#          02:00 that does not exist.
# Follows: A quota that is renewed by such a rule has one window of two hours in
#          autumn and an empty window in spring. Compute hourly rules in UTC.
set -eu
want='autumn 24 times, gaps 1h 2h; spring 24 times, gaps 0 1h'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >go.mod <<'GO'
module finding

go 1.26

require github.com/teambition/rrule-go v1.8.2
GO
cat >main.go <<'GO'
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/teambition/rrule-go"
)

func day(start time.Time) string {
	r, err := rrule.NewRRule(rrule.ROption{Freq: rrule.HOURLY, Dtstart: start})
	if err != nil {
		panic(err)
	}
	end := start.AddDate(0, 0, 1)
	var times []time.Time
	for _, t := range r.Between(start, end, true) {
		if t.Before(end) {
			times = append(times, t)
		}
	}
	fmt.Fprintf(os.Stderr, "a day of %v:", end.Sub(start))
	var gaps []time.Duration
	for i, t := range times {
		if i < 5 {
			fmt.Fprint(os.Stderr, " ", t.Format("15:04 MST"))
		}
		if i > 0 {
			gaps = append(gaps, t.Sub(times[i-1]))
		}
	}
	fmt.Fprintln(os.Stderr, " ...")
	slices.Sort(gaps)
	var text []string
	for _, g := range slices.Compact(gaps) {
		text = append(text, strings.Replace(fmt.Sprintf("%dh", int(g.Hours())), "0h", "0", 1))
	}
	return fmt.Sprintf("%d times, gaps %s", len(times), strings.Join(text, " "))
}

func main() {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		panic(err)
	}
	fmt.Printf("autumn %s; spring %s\n", day(time.Date(2026, 11, 1, 0, 0, 0, 0, zone)), day(time.Date(2026, 3, 8, 0, 0, 0, 0, zone)))
}
GO
go mod tidy >log 2>&1 || { cat log; exit 1; }
echo "version: rrule-go v1.8.2, $(go env GOVERSION)"
got=$(go run .)
[ "$got" = "$want" ] || { echo "CHANGED: $got, expected $want"; exit 1; }
echo "behaviour: $got"
