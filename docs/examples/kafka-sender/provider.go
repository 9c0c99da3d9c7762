package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/headgate/headgate/pace/httppace"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/headgate/headgate"
)

// Provider is the API of the provider. Provider receives one POST for each record.
type Provider struct {
	URL    string
	Client *http.Client
	// Heard slows down the pacer when an answer asks for it. If the source supports it, all
	// instances slow down.
	Heard *httppace.Listener
}

// NewClient returns a client that keeps one idle connection for each concurrent call.
func NewClient(calls int) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:        http.ProxyFromEnvironment,
			MaxIdleConns: calls, MaxIdleConnsPerHost: calls, IdleConnTimeout: 90 * time.Second,
			TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
		},
		// Following a redirect would be a call without a permit.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Call posts a record's value. The Idempotency-Key is the same for each try of a record,
// so that the provider can detect duplicates.
func (p *Provider) Call(ctx context.Context, r *kgo.Record, _ headgate.Instant) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, bytes.NewReader(r.Value))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	// The name is in lower case, because net/http retries a request with an Idempotency-Key
	// when its connection breaks. Such a retry would be a call without a permit.
	req.Header["idempotency-key"] = []string{fmt.Sprintf(`"%s/%d/%d"`, r.Topic, r.Partition, r.Offset)}
	sent := time.Now()
	resp, err := p.Client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	// The client can reuse the connection only after the full body was read.
	_, _ = io.CopyN(io.Discard, resp.Body, mostRead)
	advice := httppace.AdviceOf(resp, time.Now())
	p.Heard.Observe(advice, sent)
	switch {
	case resp.StatusCode >= 200 && resp.StatusCode < 300:
		return nil
	case advice.Kind == httppace.Refused:
		return &RefusedError{Status: resp.StatusCode, After: advice.For}
	}
	return fmt.Errorf("the provider answered with status %d", resp.StatusCode)
}

const mostRead = 64 << 10
