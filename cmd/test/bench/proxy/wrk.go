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

// wrk loads url. A script may print further figures.
func (l *load) wrk(ctx context.Context, url, dir string, seconds int) (report, error) {
	text, err := l.runWrk(ctx, url, dir, seconds, l.script)
	if err != nil {
		return report{}, err
	}
	return readReport(text)
}

// runWrk returns what wrk prints.
func (l *load) runWrk(ctx context.Context, url, dir string, seconds int, script string) (string, error) {
	args := []string{
		fmt.Sprintf("-t%d", threads), fmt.Sprintf("-c%d", l.concurrent()), fmt.Sprintf("-d%ds", seconds),
		"--latency", "--timeout", grace.String(), "-H", keyHeader + ": " + keyValue,
	}
	if l.header != "" {
		args = append(args, "-H", l.header)
	}
	if script != "" {
		file, err := writeScript(script, dir)
		if err != nil {
			return "", err
		}
		args = append(args, "-s", file)
	}
	text, err := exec.CommandContext(ctx, "wrk", append(args, url)...).CombinedOutput() //nolint:gosec // This package chose the arguments.
	if errors.Is(err, exec.ErrNotFound) {
		return "", notInstalled("wrk")
	}
	if err != nil {
		return "", fmt.Errorf("wrk: %w\n%s", err, text)
	}
	return string(text), nil
}

// readReport parses the figures. It returns an error when a connection failed.
func readReport(text string) (report, error) {
	var r report
	if found := regexp.MustCompile(`Socket errors: .*`).FindString(text); found != "" {
		return r, errors.New("wrk: " + found)
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
	if r.failed, err = readCount(text, "Non-2xx or 3xx responses"); err != nil {
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

// readCount returns the number after a name and a colon, or 0 without the name.
func readCount(text, name string) (int, error) {
	found := regexp.MustCompile(regexp.QuoteMeta(name) + `: (\d+)`).FindStringSubmatch(text)
	if found == nil {
		return 0, nil
	}
	return strconv.Atoi(found[1])
}

// audit loads url for a second, and checks the status of each response. It is slower than
// send, which knows only whether a response failed.
func (l *load) audit(ctx context.Context, url, dir string) error {
	text, err := l.runWrk(ctx, url+l.path, dir, 1, "statuses.lua")
	if err != nil {
		return err
	}
	return readAudit(text)
}

// readAudit checks the counts that the script prints.
func readAudit(text string) error {
	saw, err := readReport(text)
	if err != nil {
		return err
	}
	refused, err := readCount(text, "status 429")
	if err != nil {
		return err
	}
	other, err := readCount(text, "status other than 2xx and 429")
	if err != nil {
		return err
	}
	if refused*100 <= saw.requests*95 || other > 0 {
		return fmt.Errorf("%d of %d responses had status 429 and %d no status of 2xx or 429, want more than 95 %% and 0",
			refused, saw.requests, other)
	}
	return nil
}
