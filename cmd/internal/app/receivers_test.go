package app

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/envoy"
	"github.com/headgate/headgate/cmd/internal/envoy/statsd"
	"github.com/headgate/headgate/internal/testkit/logs"
)

// TestDroppedLinesAreShown: lines for a receiver that is gone are in a metric, in the log and in the status.
func TestDroppedLinesAreShown(t *testing.T) {
	gone := closedPort(t)
	var log logs.Text
	o := serverOptions(t, "domains: {d: {descriptors: [{key: k, limits: 3/1h}]}}\n")
	o.Log = log.Logger()
	o.Outlets = &envoy.Outlets{Receivers: []statsd.Config{{Network: "tcp", Address: gone, Interval: 10 * time.Millisecond}}}
	i := startServer(t, o)
	if got := askOf(t, i.addresses.GRPC)("d"); got != "3" {
		t.Fatalf("the limit is %s, want 3", got)
	}
	eventually(t, "dropped lines", func() bool {
		all := i.Status().Receivers
		return len(all) == 1 && all[0].DroppedLines > 0 && strings.Contains(all[0].Error, "connection refused")
	})
	text := metricsOf(t, i.Addresses().Health)
	for _, want := range []string{
		fmt.Sprintf("headgate_statsd_up{address=%q,network=\"tcp\"} 0\n", gone),
		fmt.Sprintf("headgate_statsd_dropped_lines_total{address=%q,network=\"tcp\"} ", gone), "headgate_unreturned_requests_total 0\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if got := log.String(); !strings.Contains(got, "counters are not sent") || !strings.Contains(got, "dropped_lines=") {
		t.Errorf("the log does not say that lines are dropped:\n%s", got)
	}
}
