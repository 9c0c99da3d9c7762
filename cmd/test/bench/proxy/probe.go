package proxy

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"time"
)

// keyHeader is the header that the limits count by. Each request of a load has it.
const (
	keyHeader = "X-Api-Key"
	keyValue  = "client-1"
)

// answers waits until the process gives the answer that the load expects.
func (p *process) answers(ctx context.Context, l load) error {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	for {
		err := p.probe(ctx, l)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("proxy: %s does not respond: %w\nThe log of the process ends with:\n%s", p.name, err, p.logged())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// probe sends one request and checks the answer.
func (p *process) probe(ctx context.Context, l load) error {
	if l.grpc {
		return p.probeCall(ctx)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+l.path, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set(keyHeader, keyValue)
	client := http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // The certificate is new in each run.
	}}
	defer client.CloseIdleConnections() // Connection: close would close the floor's connection to the upstream.
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	size, err := io.Copy(io.Discard, response.Body)
	if err != nil {
		return err
	}
	if err := p.checkDecided(response.Header.Get("RateLimit") != ""); err != nil {
		return err
	}
	return l.accepts(response.StatusCode, size)
}

// checkDecided reports an error if the answer has a RateLimit field that it should not have, or lacks one.
func (p *process) checkDecided(decided bool) error {
	if decided != p.decides {
		return fmt.Errorf("got a RateLimit field %v, want %v: check the rules in its configuration", decided, p.decides)
	}
	return nil
}

// accepts checks an answer of a proxy.
func (l *load) accepts(status int, size int64) error {
	switch {
	case l.refused && status != http.StatusTooManyRequests:
		return fmt.Errorf("got status %d, want 429", status)
	case !l.refused && (status != http.StatusOK || size != l.size()):
		return fmt.Errorf("got status %d with %d bytes, want 200 with %d bytes", status, size, l.size())
	}
	return nil
}
