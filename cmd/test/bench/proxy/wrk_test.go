package proxy

import (
	"strings"
	"testing"
	"time"
)

const printed = `Running 1s test @ http://127.0.0.1:37053
  2 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     2.65ms    2.17ms  25.31ms   82.50%
    Req/Sec    13.39k     1.25k   15.74k    71.43%
  Latency Distribution
     50%    2.12ms
     75%    3.55ms
     90%    5.31ms
     99%   10.37ms
  27991 requests in 1.05s, 30.67MB read
Requests/sec:  26606.44
Transfer/sec:     29.15MB
`

func TestReadReport(t *testing.T) {
	want := report{requests: 27991, took: 1050 * time.Millisecond, p50: 2120 * time.Microsecond, p99: 10370 * time.Microsecond}
	if got, err := readReport(printed); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	want.failed = 4
	failed := strings.Replace(printed, "Requests/sec", "  Non-2xx or 3xx responses: 4\nRequests/sec", 1)
	if got, err := readReport(failed); err != nil || got != want {
		t.Errorf("with failed requests: got %+v, %v, want %+v", got, err, want)
	}
	for _, text := range []string{
		strings.Replace(printed, "Requests/sec", "  Socket errors: connect 0, read 3, write 0, timeout 0\nRequests/sec", 1),
		"",
	} {
		if _, err := readReport(text); err == nil {
			t.Errorf("report %q: got no error", text)
		}
	}
}

func TestReadAudit(t *testing.T) {
	for _, test := range []struct {
		counts string
		good   bool
	}{
		{"status 429: 27990\nstatus other than 2xx and 429: 0\n", true},
		{"status 429: 27990\nstatus other than 2xx and 429: 1\n", false},
		{"status 429: 14000\nstatus other than 2xx and 429: 0\n", false},
		{"", false},
	} {
		if err := readAudit(printed + test.counts); (err == nil) != test.good {
			t.Errorf("counts %q: got the error %v, want none: %v", test.counts, err, test.good)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		refused          bool
		requests, failed int
		good             bool
	}{
		{false, 1000, 0, true},
		{false, 1000, 1, false},
		{false, 0, 0, false},
		{true, 1000, 951, true},
		{true, 1000, 950, false},
	} {
		l := load{refused: test.refused}
		if err := l.check(report{requests: test.requests, failed: test.failed}); (err == nil) != test.good {
			t.Errorf("%+v: got the error %v", test, err)
		}
	}
}
