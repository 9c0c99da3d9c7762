package proxy

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"time"
)

// The load that wrk generates.
const (
	threads     = 2
	connections = 64
)

// report holds the figures that wrk prints.
type report struct {
	requests int
	took     time.Duration
	p50, p99 time.Duration
}

// wrk loads url for about d, in whole seconds.
func wrk(ctx context.Context, url string, d time.Duration) (report, error) {
	seconds := max(1, int(d.Round(time.Second).Seconds()))
	cmd := exec.CommandContext(ctx, "wrk", //nolint:gosec // This package started the listener at url.
		fmt.Sprintf("-t%d", threads), fmt.Sprintf("-c%d", connections), fmt.Sprintf("-d%ds", seconds), "--latency", url)
	text, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return report{}, errors.New("wrk is not installed: run make deps at the root, or apt-get install wrk")
	}
	if err != nil {
		return report{}, fmt.Errorf("wrk: %w\n%s", err, text)
	}
	return readReport(string(text))
}

// readReport parses the figures. It returns an error when a request failed.
func readReport(text string) (report, error) {
	var r report
	for _, bad := range []string{`Socket errors: .*`, `Non-2xx or 3xx responses: .*`} {
		if found := regexp.MustCompile(bad).FindString(text); found != "" {
			return r, errors.New("wrk: " + found)
		}
	}
	done := regexp.MustCompile(`(\d+) requests in ([\d.]+\w+),`).FindStringSubmatch(text)
	p50 := regexp.MustCompile(`50%\s+([\d.]+\w+)`).FindStringSubmatch(text)
	p99 := regexp.MustCompile(`99%\s+([\d.]+\w+)`).FindStringSubmatch(text)
	if done == nil || p50 == nil || p99 == nil {
		return r, fmt.Errorf("wrk: cannot parse the report: use wrk 4:\n%s", text)
	}
	var err error
	if r.requests, err = strconv.Atoi(done[1]); err != nil {
		return r, err
	}
	for _, f := range []struct {
		into *time.Duration
		text string
	}{{&r.took, done[2]}, {&r.p50, p50[1]}, {&r.p99, p99[1]}} {
		if *f.into, err = time.ParseDuration(f.text); err != nil {
			return r, fmt.Errorf("wrk: %w", err)
		}
	}
	return r, nil
}
