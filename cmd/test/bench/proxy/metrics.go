package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// metrics returns the metrics of a process of Headgate, in the text format of Prometheus.
func (p *process) metrics(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.health+"/metrics", http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("proxy: read the metrics of %s: %w", p.name, err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return "", fmt.Errorf("proxy: read the metrics of %s: %w", p.name, err)
	}
	return string(text), nil
}

// leastFast is the part of the requests that must take the fast path, if it is measured.
const leastFast = 0.99

// tookFastPath checks that the requests of the fast side took the fast path.
func (p *process) tookFastPath(ctx context.Context) error {
	text, err := p.metrics(ctx)
	if err != nil {
		return err
	}
	var fast, all float64
	for line := range strings.Lines(text) {
		rest, found := strings.CutPrefix(line, "headgate_proxy_requests_by_path_total{")
		if !found {
			continue
		}
		labels, value, _ := strings.Cut(strings.TrimSpace(rest), "} ")
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return fmt.Errorf("proxy: the metrics of %s have the line %q: %w", p.name, line, err)
		}
		if all += n; strings.Contains(labels, `path="fast"`) {
			fast += n
		}
	}
	if fast < leastFast*all || all == 0 {
		return fmt.Errorf("proxy: %.0f of %.0f requests of %s took the fast path: check its configuration", fast, all, p.name)
	}
	return nil
}
