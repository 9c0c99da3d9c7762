package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// h2load loads url over HTTP/2.
func (l *load) h2load(ctx context.Context, url, dir string, seconds int) (report, error) {
	path := filepath.Join(dir, "h2load.log")
	text, err := exec.CommandContext(ctx, "h2load", //nolint:gosec // This package chose the arguments.
		fmt.Sprintf("-t%d", threads), fmt.Sprintf("-c%d", http2Connections), fmt.Sprintf("-m%d", streams),
		"-D", strconv.Itoa(seconds), "-H", keyHeader+": "+keyValue, "--log-file", path, url).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return report{}, notInstalled("h2load")
	}
	if err != nil {
		return report{}, fmt.Errorf("h2load: %w\n%s", err, text)
	}
	log, err := os.Open(filepath.Clean(path))
	if err != nil {
		return report{}, err
	}
	defer func() {
		_ = log.Close()     // It was only read.
		_ = os.Remove(path) // The folder is temporary.
	}()
	return readH2load(string(text), log)
}

// readH2load parses the summary, and the log with a line for each request. The summary has no
// percentiles. It returns an error when a connection failed, or another protocol was used.
func readH2load(text string, log io.Reader) (report, error) {
	var r report
	done := regexp.MustCompile(`finished in ([\d.]+\w+),`).FindStringSubmatch(text)
	if done == nil || !strings.Contains(text, "Application protocol: h2") {
		return r, fmt.Errorf("h2load: found no report of HTTP/2 requests:\n%s", text)
	}
	if !strings.Contains(text, " 0 errored, 0 timeout") {
		return r, fmt.Errorf("h2load: connections failed:\n%s", text)
	}
	var err error
	if r.took, err = time.ParseDuration(done[1]); err != nil {
		return r, fmt.Errorf("h2load: %w", err)
	}
	var latencies []time.Duration
	for lines := bufio.NewScanner(log); lines.Scan(); {
		status, latency, err := readLogLine(lines.Text())
		if err != nil {
			return r, err
		}
		if status < 200 || status > 399 {
			r.failed++
		}
		latencies = append(latencies, latency)
	}
	if r.requests = len(latencies); r.requests > 0 {
		slices.Sort(latencies)
		r.p50, r.p99 = latencies[r.requests/2], latencies[r.requests*99/100]
	}
	return r, nil
}

// readLogLine parses the start time, the status and the microseconds of a request.
func readLogLine(line string) (status int, latency time.Duration, err error) {
	fields := strings.Fields(line)
	if len(fields) < 3 {
		return 0, 0, fmt.Errorf("h2load: log line %q: want three fields", line)
	}
	if status, err = strconv.Atoi(fields[1]); err != nil {
		return 0, 0, fmt.Errorf("h2load: log line %q: %w", line, err)
	}
	micros, err := strconv.Atoi(fields[2])
	if err != nil {
		return 0, 0, fmt.Errorf("h2load: log line %q: %w", line, err)
	}
	return status, time.Duration(micros) * time.Microsecond, nil
}
