package limiter_test

import (
	"bytes"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/limiter"
	"github.com/headgate/headgate/store/storetest"
)

// TestMillionKeys: with a zero Config, each of a million keys gets its unit, and keeps its state.
func TestMillionKeys(t *testing.T) {
	n := race.Fewer(1_000_000, 50_000)
	for name, row := range map[string]struct {
		limit  headgate.Limit
		config limiter.Config
	}{
		"token_bucket":   {headgate.Limit{Count: 1, Per: 24 * time.Hour}, limiter.Config{}},
		"sliding_log":    {headgate.Limit{Count: 20, Per: 24 * time.Hour}, limiter.Config{Algorithm: headgate.SlidingLog}},
		"sliding_window": {headgate.Limit{Count: 20, Per: 24 * time.Hour}, limiter.Config{Algorithm: headgate.SlidingWindow, SubWindows: 10}},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := limiter.New(row.limit, row.config)
			if err != nil {
				t.Fatal(err)
			}
			var d headgate.Decision
			for _, want := range []headgate.Verdict{headgate.Allow, headgate.Deny} {
				wrong := 0
				for i := range n {
					if err := k.Take(t.Context(), "user "+strconv.Itoa(i), row.limit.Count, &d); err != nil {
						t.Fatal(err)
					}
					if d.Verdict != want {
						wrong++
					}
				}
				if wrong > 0 {
					t.Errorf("%d of %d keys did not get %s; the last decision is %+v", wrong, n, want, d)
				}
			}
		})
	}
}

// TestFullLimiterSaysSo: a newcomer without room gets a RetryAfter, after which it passes. The first
// one is logged.
func TestFullLimiterSaysSo(t *testing.T) {
	for _, allow := range []bool{false, true} {
		clock, out := storetest.NewClock(), bytes.Buffer{}
		k, err := limiter.New(headgate.Limit{Count: 1, Per: 24 * time.Hour}, limiter.Config{
			MaxMemory: 64 << 10, AllowOnFull: allow, Clock: clock.Now, Log: slog.New(slog.NewTextHandler(&out, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		var d headgate.Decision
		full := 0
		for i := range 3000 {
			clock.Advance(time.Second)
			if err := k.Take(t.Context(), strconv.Itoa(i), 1, &d); err != nil {
				t.Fatal(err)
			}
			if d.Reason == headgate.StoreFull {
				full++
			}
		}
		if full < 500 || d.Reason != headgate.StoreFull {
			t.Fatalf("%d of 3000 keys find no room, and the last decision is %+v", full, d)
		}
		text := out.String()
		if lines := strings.Count(text, "\n"); lines != 1 || !strings.Contains(text, "raise Config.MaxMemory") || !strings.Contains(text, "limit=1/1d") {
			t.Errorf("AllowOnFull %v has logged %d lines: %s", allow, lines, text)
		}
		if allow {
			if d.Verdict != headgate.Allow || d.RetryAfter != 0 {
				t.Errorf("with AllowOnFull, the last decision is %+v", d)
			}
			continue
		}
		if d.RetryAfter < 22*time.Hour || d.RetryAfter > 24*time.Hour {
			t.Errorf("the last decision is %+v, want a RetryAfter of about 23 hours", d)
		}
		clock.Advance(d.RetryAfter)
		if err := k.Take(t.Context(), "2999", 1, &d); err != nil || d.Verdict != headgate.Allow {
			t.Errorf("after the RetryAfter: %+v, %v", d, err)
		}
	}
}
