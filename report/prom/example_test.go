package prom_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/headgate/headgate/report"
	"github.com/headgate/headgate/report/prom"
)

// The metrics of a report are served like any handler.
func Example() {
	counted := report.New(report.Config{})
	defer counted.Close()
	counted.Traffic.Answered(http.StatusOK)
	registry, err := prom.NewRegistry(prom.Config{Report: counted})
	if err != nil {
		panic(err)
	}
	w := httptest.NewRecorder()
	prom.Handler(registry).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, `headgate_proxy_requests_total{code="2xx"}`) {
			fmt.Print(line)
		}
	}
	// Output: headgate_proxy_requests_total{code="2xx"} 1
}
