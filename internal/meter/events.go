package meter

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/internal/meter/journal"
	"github.com/headgate/headgate/internal/readfile"
)

// Bounds of a batch of events, and of what an endpoint answers.
const (
	// DefaultMaxEvents and DefaultMaxBatchBytes bound one request by default.
	DefaultMaxEvents     = 1000
	DefaultMaxBatchBytes = 1 << 20
	// MostEvents is the most that MaxEvents can be.
	MostEvents = batchRecords
	// DefaultTimeout bounds one request by default.
	DefaultTimeout = 10 * time.Second
	maxAnswer      = 64 << 10
	maxToken       = 16 << 10
)

// EventsConfig configures NewCloudEvents.
type EventsConfig struct {
	// URL is the endpoint, with http or https.
	URL string
	// TokenFile is a file with a bearer token. It is read for each request, so a new token needs no restart. "" sends none.
	TokenFile string
	// Roots are the authorities of the endpoint's certificate; nil are those of the machine.
	Roots *x509.CertPool
	// MaxEvents and MaxBytes bound one request; 0 are DefaultMaxEvents and DefaultMaxBatchBytes. One event is sent even if it has
	// more bytes.
	MaxEvents, MaxBytes int
	// Timeout bounds one request; 0 is DefaultTimeout.
	Timeout time.Duration
	// SetAsideFile gets the events that the endpoint refuses although it accepts others. "" waits for the endpoint instead.
	SetAsideFile string
	// Transport is the HTTP transport, for tests; nil makes one.
	Transport http.RoundTripper
}

// CloudEvents posts records as CloudEvents 1.0, in batches.
type CloudEvents struct {
	config EventsConfig
	client http.Client
	size   int // events of the next request: fewer after a refusal, and slowly more after successes
	body   []byte
	aside  atomic.Uint64
	// unkept counts the refused records that SetAsideFile had no capacity for.
	unkept atomic.Uint64
	// probe is the last accepted record. A record that the endpoint refuses is at fault only if the endpoint still accepts this one.
	probe    journal.Record
	accepted bool // probe is a record
}

// NewCloudEvents gives an output that posts to an endpoint.
//
// A status of 2xx acknowledges all events of a request. After 400, 413, 415 or 422, the output halves the batch until one event is left.
// If the endpoint refuses that event and accepts another one, the event goes to SetAsideFile. The other one is the last event that
// the endpoint has accepted, which it gets again, or before the first success a later one. If the endpoint refuses the other one too, the
// endpoint is at fault, and the output tries again, as after every other status, a redirect, and a network fault.
func NewCloudEvents(c EventsConfig) (*CloudEvents, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, errors.New("meter: the address of the endpoint is no URL like https://billing.example/events, without a user")
	}
	if c.MaxEvents <= 0 {
		c.MaxEvents = DefaultMaxEvents
	}
	if c.MaxBytes <= 0 {
		c.MaxBytes = DefaultMaxBatchBytes
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	c.MaxEvents = min(c.MaxEvents, MostEvents)
	if c.Transport == nil {
		c.Transport = &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: c.Roots, MinVersion: tls.VersionTLS12},
			MaxIdleConns: 1, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: maxAnswer, ForceAttemptHTTP2: true,
		}
	}
	return &CloudEvents{config: c, size: c.MaxEvents, client: http.Client{
		Transport: c.Transport, Timeout: c.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Name implements Output.
func (*CloudEvents) Name() string { return "events" }

// SetAside counts the events in SetAsideFile that this process has written.
func (c *CloudEvents) SetAside() uint64 { return c.aside.Load() }

// droppedRefused counts the records that the endpoint refuses and that are not kept, because SetAsideFile is full.
func (c *CloudEvents) droppedRefused() uint64 { return c.unkept.Load() }

// Close implements Output.
func (c *CloudEvents) Close() error {
	c.client.CloseIdleConnections()
	return nil
}

// Deliver implements Output.
func (c *CloudEvents) Deliver(ctx context.Context, records []journal.Record) (delivered int, err error) {
	for delivered < len(records) {
		rest := records[delivered:]
		n, err := c.post(ctx, rest[:min(len(rest), c.size)])
		refused := asRefused(err)
		switch {
		case err == nil:
			delivered += n
			c.probe, c.accepted = rest[n-1], true
			c.size = min(c.config.MaxEvents, 2*c.size)
		case refused && n > 1:
			c.size = max(1, n/2)
		case refused && c.config.SetAsideFile != "":
			if err := c.setAside(ctx, rest, err); err != nil {
				return delivered, err
			}
			delivered++
		default:
			return delivered, err
		}
	}
	return delivered, nil
}

// setAside sets the first record aside, if the endpoint accepts another one.
func (c *CloudEvents) setAside(ctx context.Context, records []journal.Record, why error) error {
	if err := c.acceptsAnother(ctx, records, why); err != nil {
		return err
	}
	switch err := appendAside(c.config.SetAsideFile, &records[0]); {
	case err == nil:
		c.aside.Add(1)
	case errors.Is(err, errAsideFull):
		c.unkept.Add(1)
	default:
		return fmt.Errorf("%w; and it cannot be set aside: %w", why, err)
	}
	return nil
}

// acceptsAnother reports with nil that the endpoint accepts another record than the first one: the last accepted one, or before the first
// success the records 1, 2, 4, 8 and so on, so that many refused ones in a row cost few requests.
func (c *CloudEvents) acceptsAnother(ctx context.Context, records []journal.Record, why error) error {
	if c.accepted {
		_, err := c.post(ctx, []journal.Record{c.probe})
		if err != nil {
			err = errors.Join(why, err)
		}
		return err
	}
	for i := 1; i < len(records); i *= 2 {
		_, err := c.post(ctx, records[i:i+1])
		if err == nil {
			c.probe, c.accepted = records[i], true
			return nil
		}
		if !asRefused(err) {
			return errors.Join(why, err)
		}
	}
	return why
}

// refusedError is the error of an endpoint that finds fault with the events.
type refusedError struct{ status int }

// Error gives the status.
func (e *refusedError) Error() string {
	return fmt.Sprintf("the endpoint refuses the events with status %d: find the reason in its log", e.status)
}

func asRefused(err error) bool {
	var refused *refusedError
	return errors.As(err, &refused)
}

// post sends as many records as one request has room for. n is their number.
func (c *CloudEvents) post(ctx context.Context, records []journal.Record) (n int, err error) {
	c.body, n = appendEvents(c.body[:0], records, c.config.MaxBytes)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.config.URL, bytes.NewReader(c.body))
	if err != nil {
		return n, err
	}
	req.Header.Set("Content-Type", "application/cloudevents-batch+json; charset=utf-8")
	if c.config.TokenFile != "" {
		token, err := readfile.Line(c.config.TokenFile, maxToken, "token")
		if err != nil {
			return n, fmt.Errorf("the token (metering.events.token_file): %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := c.client.Do(req)
	if err != nil {
		return n, c.hideQuery(err)
	}
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer) // A read answer lets the connection serve the next request.
	_ = answer.Body.Close()
	return n, judge(answer, publicURL(c.config.URL))
}

// hideQuery gives an error of the client without the query of the address, which may have a secret.
func (c *CloudEvents) hideQuery(err error) error {
	if failed, ok := errortype.As[*url.Error](err); ok {
		return fmt.Errorf("%s: %w%s", publicURL(c.config.URL), failed.Err, adviseRequest(failed.Err))
	}
	return err
}

// adviseRequest says what to do after an error of a request, if the cause is known.
func adviseRequest(err error) string {
	unknown, isDNS := errortype.As[*net.DNSError](err)
	_, isCertificate := errortype.As[*tls.CertificateVerificationError](err)
	switch {
	case isDNS && unknown.IsNotFound:
		return ": correct the host in the address (metering.events.url)"
	case errors.Is(err, syscall.ECONNREFUSED):
		return ": nothing listens there: start the endpoint, or correct the address (metering.events.url)"
	case isCertificate:
		return ": name the authorities of the endpoint (metering.events.ca), or correct the address (metering.events.url)"
	case errors.Is(err, http.ErrSchemeMismatch):
		return ": the endpoint has no TLS: correct the address (metering.events.url)"
	default:
		return ""
	}
}

// publicURL gives the scheme, host and path of an address, for people: the query may have a secret.
func publicURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the endpoint"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// judge gives the error of a status. address is for people.
func judge(answer *http.Response, address string) error {
	advice := ""
	switch s := answer.StatusCode; {
	case s >= 200 && s < 300:
		return nil
	case s >= 300 && s < 400:
		return fmt.Errorf("%s redirects with status %d, which is refused: write the address that it redirects to (metering.events.url)",
			address, s)
	case s == http.StatusBadRequest, s == http.StatusRequestEntityTooLarge, s == http.StatusUnsupportedMediaType,
		s == http.StatusUnprocessableEntity:
		return &refusedError{s}
	case s == http.StatusUnauthorized, s == http.StatusForbidden:
		advice = ": check the token (metering.events.token_file)"
	case s == http.StatusNotFound, s == http.StatusMethodNotAllowed, s == http.StatusGone:
		advice = ": nothing takes events at this address: correct it (metering.events.url)"
	}
	err := fmt.Errorf("%s answers with status %d%s", address, answer.StatusCode, advice)
	seconds, bad := strconv.Atoi(answer.Header.Get("Retry-After"))
	if bad != nil || seconds <= 0 {
		return err
	}
	return &RetryError{err, min(time.Duration(min(seconds, 1<<20))*time.Second, mostRetryAfter)}
}
