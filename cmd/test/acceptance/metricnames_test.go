package acceptance

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/config"
)

// TestMetricNamesAreBounded: one client sends values, short ones or of 4 KiB, to 20 limits whose metrics have the values in their names, and four
// scrapers read all metrics at the same time. The process stays within the bound that check prints, and a scrape has its answer.
func TestMetricNamesAreBounded(t *testing.T) {
	for _, length := range []int{30, 4<<10 - 4} {
		t.Run(fmt.Sprint(length), func(t *testing.T) { nameMetrics(t, length) })
	}
}

func nameMetrics(t *testing.T, length int) {
	t.Helper()
	var text strings.Builder
	text.WriteString("version: 1\nrules: []\nmax_memory: 16MiB\nserver: {grpc: off, http: {address: '127.0.0.1:0', max_connections: 16, max_body: 2MiB}}\n" +
		"domains:\n  shop:\n    descriptors:\n")
	const limits = 20
	for n := range limits {
		fmt.Fprintf(&text, "      - {key: key%d, detailed_metric: true, limits: 1000000/1d}\n", n)
	}
	i := launchServer(t, file(t, text.String()+adminAnywhere))
	loaded, err := config.Load(i.path)
	if err != nil {
		t.Fatal(err)
	}
	const values, perRequest = 1200, 240 // More than max_metric_values of each limit.
	for from := 0; from < values; from += perRequest {
		for n := range limits {
			var body strings.Builder
			body.WriteString(`{"domain": "shop", "descriptors": [`)
			for v := range perRequest {
				if v > 0 {
					body.WriteByte(',')
				}
				fmt.Fprintf(&body, `{"entries": [{"key": "key%d", "value": "%d%s"}]}`, n, from+v, strings.Repeat("v", length))
			}
			body.WriteString("]}")
			postJSON(t, i, body.String())
		}
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 3 {
				began := time.Now()
				reply, metrics := get(t, "http://"+i.Health+"/metrics") // On a busy machine, several at once may exceed their time.
				t.Logf("a scrape of %d KiB: status %d after %v", len(metrics)>>10, reply.StatusCode, time.Since(began))
			}
		})
	}
	all.Wait()
	eventually(t, "all metrics", func() bool {
		reply, metrics := get(t, "http://"+i.Health+"/metrics")
		return reply.StatusCode == http.StatusOK && strings.Contains(metrics, "\nratelimit_service_rate_limit_total_hits{")
	})
	withinBound(t, i, loaded.ServerMemoryBound())
}

// TestSentLimitsAreBounded: a client sends more different limits than a store prepares. The process stays within the bound that check
// prints.
func TestSentLimitsAreBounded(t *testing.T) {
	i := launchServer(t, file(t, "version: 1\nrules: []\nmax_memory: 16MiB\nserver: {grpc: off, http: {address: '127.0.0.1:0', max_connections: 16, max_body: 2MiB}}\n"+
		"domains:\n  shop:\n    descriptors:\n      - {key: key, limits: 1000000/1d}\n"+adminAnywhere))
	loaded, err := config.Load(i.path)
	if err != nil {
		t.Fatal(err)
	}
	const limits, perRequest = 70_000, 500
	for from := 1; from <= limits; from += perRequest {
		var body strings.Builder
		body.WriteString(`{"domain": "shop", "descriptors": [`)
		for n := range perRequest {
			if n > 0 {
				body.WriteByte(',')
			}
			fmt.Fprintf(&body, `{"entries": [{"key": "other", "value": "v"}], "limit": {"requests_per_unit": %d, "unit": "DAY"}}`, from+n)
		}
		body.WriteString("]}")
		postJSON(t, i, body.String())
	}
	withinBound(t, i, loaded.ServerMemoryBound())
}

// postJSON sends a request of Envoy's rate limit service.
func postJSON(t *testing.T, i *instance, body string) {
	t.Helper()
	answer, err := http.Post("http://"+i.HTTP+"/json", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK {
		t.Fatalf("POST /json answers %d: %.200s", answer.StatusCode, text)
	}
}

// withinBound checks the most memory that the process has used.
func withinBound(t *testing.T, i *instance, bound int64) {
	t.Helper()
	peaked := peak(t, i.command.Process.Pid)
	t.Logf("peak %d MiB of %d MiB", peaked>>20, bound>>20)
	if peaked > bound {
		t.Errorf("the process took %d MiB, and check prints %d", peaked>>20, bound>>20)
	}
}
