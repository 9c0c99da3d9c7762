package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSum(t *testing.T) {
	var l latencies
	for _, counts := range []bool{false, true} {
		for i := range 200 {
			l.times.Latency = append(l.times.Latency, time.Duration(200-i)*time.Microsecond)
			l.times.Delay = append(l.times.Delay, time.Duration(200-i))
		}
		l.sum(counts)
	}
	if !slices.Equal(l.p50, []float64{101_000}) || !slices.Equal(l.p99, []float64{199_000}) || !slices.Equal(l.delay, []float64{199}) {
		t.Errorf("got p50 %v, p99 %v and delay %v, want one value of each: 101000, 199000 and 199", l.p50, l.p99, l.delay)
	}
	if n := len(l.times.Latency) + len(l.times.Delay); n != 0 {
		t.Errorf("got %d times after the round, want 0", n)
	}
}

func TestNeverQueued(t *testing.T) {
	for _, test := range []struct{ metrics, want string }{
		{"\nheadgate_throttle_work_seconds_total 1.5\nheadgate_throttle_waited_total 0\n", ""},
		{"\nheadgate_throttle_work_seconds_total 1.5\nheadgate_throttle_waited_total 3\n", "requests waited"},
		{"\nheadgate_throttle_work_seconds_total 0\nheadgate_throttle_waited_total 0\n", "no request passed"},
		{"\nheadgate_build_info 1\n", "no request passed"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, test.metrics) }))
		l := latencies{process: &process{name: "side", health: s.URL}}
		err := l.neverQueued(t.Context())
		s.Close()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("metrics %q: got the error %v, want %q", test.metrics, err, test.want)
		}
	}
}
