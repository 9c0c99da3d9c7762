package acceptance

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// lasting gives a configuration whose windows do not end during a test. Fixed windows of 365 days begin at multiples of
// 365 days after 1970, so one of them ends on a day of each year. On the day before, lasting makes them shorter.
func lasting(text string) string { return lastingAt(text, time.Now()) }

func lastingAt(text string, now time.Time) string {
	const day = 24 * time.Hour
	days := 365
	for left(now, time.Duration(days)*day) <= day {
		days--
	}
	return strings.ReplaceAll(text, "/365d", fmt.Sprintf("/%dd", days))
}

// left gives the time until the window of a period ends.
func left(now time.Time, per time.Duration) time.Duration {
	return per - now.Sub(time.Unix(0, 0))%per
}

// TestLasting: only on the day before a window of 365 days ends, other windows are used.
func TestLasting(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]string{
		"2026-12-16T23:59:59Z": "5/365d",
		"2026-12-17T00:00:00Z": "5/364d",
		"2026-12-17T23:59:59Z": "5/364d",
		"2026-12-18T00:00:00Z": "5/365d",
	} {
		now, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		if got := lastingAt("5/365d", now); got != want {
			t.Errorf("at %s: got %s, want %s", at, got, want)
		}
	}
}
