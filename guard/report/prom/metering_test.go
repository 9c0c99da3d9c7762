package prom_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/guard/report/prom"
	"github.com/headgate/headgate/internal/meter"
	"github.com/headgate/headgate/internal/meter/journal"
)

func TestMeteringMetrics(t *testing.T) {
	counted := report.New(report.Config{})
	defer counted.Close()
	registry, err := prom.NewRegistry(prom.Config{Report: counted, Metering: func() meter.Stats {
		return meter.Stats{Journal: journal.Stats{Written: 9, Bytes: 100}, Lost: 2, Outputs: []meter.OutputStats{{
			Name: "events", SetAside: 3, ReaderStats: journal.ReaderStats{Pending: 4, Dropped: 1, Oldest: 1500 * time.Millisecond},
		}}}
	}})
	if err != nil {
		t.Fatal(err)
	}
	const want = `
# HELP headgate_metering_dropped_total Records that were lost before an output had delivered them.
# TYPE headgate_metering_dropped_total counter
headgate_metering_dropped_total{output="events"} 1
# HELP headgate_metering_lost_total Changes that were not counted, because the journal could not be written for too long.
# TYPE headgate_metering_lost_total counter
headgate_metering_lost_total 2
# HELP headgate_metering_oldest_seconds Age of the oldest record that an output has tried to deliver, or 0.
# TYPE headgate_metering_oldest_seconds gauge
headgate_metering_oldest_seconds{output="events"} 1.5
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want),
		"headgate_metering_dropped_total", "headgate_metering_lost_total", "headgate_metering_oldest_seconds"); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(registry, "headgate_metering_records_total", "headgate_metering_set_aside_total",
		"headgate_metering_pending_records"); n != 3 || err != nil {
		t.Errorf("%d series, %v, want 3", n, err)
	}
}
