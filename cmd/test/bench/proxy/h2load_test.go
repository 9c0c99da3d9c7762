package proxy

import (
	"strings"
	"testing"
	"time"
)

const (
	printedH2load = `Application protocol: h2

finished in 1.01s, 50650.00 req/s, 55.21MB/s
requests: 3 total, 11 started, 3 done, 3 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 2 2xx, 0 3xx, 1 4xx, 0 5xx
`
	loggedH2load = "1795602721622713\t200\t300\n1795602721622759\t429\t100\n1795602721622759\t200\t200\n"
)

func TestReadH2load(t *testing.T) {
	got, err := readH2load(printedH2load, strings.NewReader(loggedH2load))
	want := report{requests: 3, failed: 1, took: 1010 * time.Millisecond, p50: 200 * time.Microsecond, p99: 300 * time.Microsecond}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for _, test := range []struct{ text, log string }{
		{strings.Replace(printedH2load, ": h2", ": http/1.1", 1), loggedH2load},
		{strings.Replace(printedH2load, "0 errored", "2 errored", 1), loggedH2load},
		{"", loggedH2load},
		{printedH2load, "1795602721622713\t200\n"},
		{printedH2load, "1795602721622713\tx\t1\n"},
		{printedH2load, "1795602721622713\t200\tx\n"},
	} {
		if _, err := readH2load(test.text, strings.NewReader(test.log)); err == nil {
			t.Errorf("report %q, log %q: got no error", test.text, test.log)
		}
	}
}
