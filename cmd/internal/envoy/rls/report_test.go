package rls_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/headgate/headgate/cmd/internal/envoy/rls"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
)

// logged makes a service of trees, and a function that ends its log and returns a short form of the lines.
func logged(t *testing.T, o rls.Options, c guard.Config) (s *subject, lines func() []string) {
	t.Helper()
	var out bytes.Buffer // The Report writes, and Close waits for it.
	o.Report = report.New(report.Config{Log: slog.New(slog.NewJSONHandler(&out, nil)), Decisions: report.All, Keys: report.KeysPlain})
	return serve(t, o, c), func() []string {
		o.Report.Close()
		var all []string
		for scanner := bufio.NewScanner(&out); scanner.Scan(); {
			var line map[string]any
			if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprint(line["rule"], " ", line["mode"], " ", line["descriptors"], " ", line["hits"], " ", line["reason"], " ", line["code"]))
		}
		return all
	}
}

// TestDecisionsAreReported checks that each descriptor with a limit has a line with the code of its status.
func TestDecisionsAreReported(t *testing.T) {
	minute := func(n int64) *guard.Leaf { return counted(n, time.Minute) }
	s, lines := logged(t, rls.Options{}, domain(
		node("a", "", inQuota(minute(1))), node("b", "", inQuota(minute(9))), node("c", "", minute(1)), node("d", "", inShadow(minute(1))),
		node("e", "", nil),
	))
	s.ask("d", hits(2, asked("a", "1")), asked("b", "1"), asked("e", "1"))
	s.ask("d", asked("c", "1"), asked("c", "1"), hits(2, asked("d", "1")))
	s.ask("d", sent(0, typev3.RateLimitUnit_MINUTE, asked("f", "1")))
	want := []string{
		`d.a enforce descriptor:a="1" 2 never OK`, // Another quota lets it pass.
		`d.b enforce descriptor:b="1" 1 within_limit OK`,
		`d.c enforce descriptor:c="1" 1 within_limit OK`,
		`d.c enforce descriptor:c="1" 1 over_limit OVER_LIMIT`,
		`d.d shadow descriptor:d="1" 2 never OK`,
		`d enforce descriptor:f="1" 1 never OVER_LIMIT`,
	}
	if got := lines(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestFailuresAreReported checks the code of a call that the store could not decide.
func TestFailuresAreReported(t *testing.T) {
	c := domain(node("a", "", counted(1, time.Minute)))
	c.Domains[0].Fallback = guard.FallbackError
	s, lines := logged(t, rls.Options{}, c)
	s.store.down = true
	if _, err := s.ShouldRateLimit(t.Context(), request("d", asked("a", "1"))); !strings.HasSuffix(fmt.Sprint(err), "the store could not decide: the log of headgate server says why") {
		t.Fatalf("got %v, want an error without one of the store, which has its address", err)
	}
	if got := lines(); len(got) != 1 || got[0] != `d.a enforce descriptor:a="1" 1 store_unavailable UNAVAILABLE` {
		t.Errorf("got %v", got)
	}
}

// TestUnreportedDecisionsAllocateAsBefore checks that a report that logs nothing costs a call no allocation.
func TestUnreportedDecisionsAllocateAsBefore(t *testing.T) {
	allocations := func(to *report.Report) float64 {
		s := serve(t, rls.Options{Report: to}, domain(node("a", "", counted(1<<30, time.Hour))))
		req := request("d", make([]*commonv3.RateLimitDescriptor, 20)...)
		for i := range req.GetDescriptors() {
			req.Descriptors[i] = asked("a", "1")
		}
		// The pool of the working memory may lose it between two calls, and does so often with the race
		// detector. The least number is that of a call that found it.
		least := math.Inf(1)
		for range 100 {
			least = min(least, testing.AllocsPerRun(1, func() {
				if _, err := s.ShouldRateLimit(t.Context(), req); err != nil {
					t.Fatal(err)
				}
			}))
		}
		return least
	}
	sampled := report.New(report.Config{Log: slog.New(slog.DiscardHandler)})
	defer sampled.Close()
	if without, with := allocations(nil), allocations(sampled); with > without {
		t.Errorf("%v allocations with a report, %v without", with, without)
	}
}
