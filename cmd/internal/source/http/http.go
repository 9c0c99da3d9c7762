package http

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	nethttp "net/http"
	"net/url"
	"time"

	"github.com/headgate/headgate/internal/config/source"
)

const (
	// MaxDocument bounds a document, in bytes, after it was unpacked.
	MaxDocument = 64 << 20
	// MaxYAML bounds a document that is not JSON: its tree takes up to two hundred times its size. See maxSeparators.
	MaxYAML = 16 << 20

	maxRedirects = 3
	// mostRetry bounds the pause after a failure.
	mostRetry = 5 * time.Second
	// maxHeader bounds the header of an answer, in bytes.
	maxHeader = 64 << 10
)

// Config describes a source.
type Config struct {
	// URL is http or https.
	URL string
	// Interval is the time from one read to the next, up to a fifth less. Timeout bounds one read.
	Interval, Timeout time.Duration
	// Header gives the headers of the next request; nil for none.
	Header func() (nethttp.Header, error)
	// TLS is for https; nil uses the authorities of the system.
	TLS *tls.Config
}

// Source is a source.Source of one document.
type Source struct {
	config Config
	client *nethttp.Client
	at     *url.URL
	// etag and modified are those of the last complete document, and digest is its own. modified is empty if the document may have
	// changed within the second.
	etag, modified, digest string
	// refused says why the last complete document cannot be read; nil if it was given to the receiver. The source reads it
	// again only when it changes.
	refused error
	// had is the number of objects of each kind in the last document that was given to the receiver.
	had map[source.Kind]int
}

// Open makes a source. It connects with the first read.
func Open(c Config) (*Source, error) {
	at, err := url.Parse(c.URL)
	switch {
	case err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.User != nil:
		return nil, errors.New("source: the URL is not http or https with a host and without a user: write it like " +
			"https://config.example.com/headgate.yaml")
	case c.Interval <= 0 || c.Timeout <= 0:
		return nil, fmt.Errorf("source: interval %v and timeout %v must be above 0: give both", c.Interval, c.Timeout)
	}
	s := &Source{config: c, at: at, had: map[source.Kind]int{}}
	s.client = &nethttp.Client{
		Transport: &nethttp.Transport{
			Proxy: nethttp.ProxyFromEnvironment, TLSClientConfig: c.TLS, ForceAttemptHTTP2: true, MaxIdleConns: 1,
			MaxResponseHeaderBytes: maxHeader, IdleConnTimeout: max(2*c.Interval, time.Minute),
		},
		CheckRedirect: s.checkRedirect,
	}
	return s, nil
}

// checkRedirect refuses redirects to another host, which would get the headers of the configuration.
func (s *Source) checkRedirect(to *nethttp.Request, via []*nethttp.Request) error {
	switch {
	case len(via) > maxRedirects:
		return fmt.Errorf("there are more than %d redirects: name the last URL", maxRedirects)
	case to.URL.Host != s.at.Host || to.URL.Scheme != s.at.Scheme:
		return fmt.Errorf("it redirects to another host, %s://%s: name that URL in the configuration", to.URL.Scheme, to.URL.Host)
	}
	return nil
}

// Follow implements source.Source.
func (s *Source) Follow(ctx context.Context, to source.Receiver) {
	s.etag, s.modified, s.digest, s.refused = "", "", "", nil
	for ctx.Err() == nil {
		began := time.Now()
		pause := s.config.Interval
		if err := s.read(ctx, to); err == nil {
			to.Reached(began)
		} else if ctx.Err() == nil {
			to.Failed(err)
			if !errors.Is(err, s.refused) {
				pause = min(pause, mostRetry)
			}
		}
		next := time.NewTimer(jittered(pause))
		select {
		case <-ctx.Done():
		case <-next.C:
		}
		next.Stop()
	}
}

// jittered gives a time that is up to a fifth shorter, so that instances do not read together. It is not longer: a change is in
// force soon after one interval.
func jittered(d time.Duration) time.Duration {
	return d - time.Duration(rand.Float64()/5*float64(d))
}

// Close implements source.Source.
func (s *Source) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

// read reads the document once, and gives it to the receiver if it changed.
func (s *Source) read(ctx context.Context, to source.Receiver) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	request, err := s.request(ctx)
	if err != nil {
		return err
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return s.failure(err)
	}
	defer func() { _ = answer.Body.Close() }()
	switch {
	case answer.StatusCode == nethttp.StatusNotModified && s.digest != "":
		return s.refused
	case answer.StatusCode != nethttp.StatusOK:
		return fmt.Errorf("source: %s answers %d: it must answer 200 with the document", s.shown(), answer.StatusCode)
	}
	text, err := s.body(answer)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	digest := hex.EncodeToString(sum[:8])
	if digest != s.digest {
		all, err := parse(text)
		if err == nil {
			err = s.lost(all)
		}
		if s.refused = nil; err != nil {
			s.refused = fmt.Errorf("source: %s: %w", s.shown(), err)
		} else {
			to.Changed(source.Change{All: true, Objects: all.objects, Revision: digest})
		}
	}
	s.digest, s.etag, s.modified = digest, answer.Header.Get("ETag"), strongDate(answer.Header)
	return s.refused
}

// Had says that the source has had n objects of a kind, as those of a cache. The caller calls Had before Follow. A document in which their
// section is missing or null is refused then, as after a document that had objects of the kind.
func (s *Source) Had(kind source.Kind, n int) { s.had[kind] = n }

// lost refuses a document in which a section is missing or null that had objects: a program whose query fails writes such a document, and
// all customers would be deleted at once. Otherwise, it notes what the document has.
func (s *Source) lost(all *collection) error {
	for _, kind := range source.Kinds() {
		if n, name := s.had[kind], kind.Section(); n > 0 && !all.given[kind] {
			return fmt.Errorf("the document has no %s, and had %d before: write %s: {} to delete all of them", name, n, name)
		}
	}
	for _, kind := range source.Kinds() {
		s.had[kind] = all.count(kind)
	}
	return nil
}

// strongDate gives the time of a document if it stands for one version; "" otherwise. Times have whole seconds, so a document that was sent
// within the second of its last change may change again under the same time: RFC 9110, section 8.8.2.2.
func strongDate(h nethttp.Header) string {
	modified := h.Get("Last-Modified")
	at, err := nethttp.ParseTime(modified)
	sent, noDate := nethttp.ParseTime(h.Get("Date"))
	if err != nil || noDate != nil || sent.Sub(at) < time.Second {
		return ""
	}
	return modified
}

// request makes a conditional request.
func (s *Source) request(ctx context.Context) (*nethttp.Request, error) {
	request, err := nethttp.NewRequestWithContext(ctx, nethttp.MethodGet, s.config.URL, nethttp.NoBody)
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	if s.config.Header != nil {
		header, err := s.config.Header()
		if err != nil {
			return nil, err
		}
		maps.Copy(request.Header, header)
	}
	request.Header.Set("Accept", "application/json, application/yaml")
	switch {
	case s.etag != "":
		request.Header.Set("If-None-Match", s.etag)
	case s.modified != "":
		request.Header.Set("If-Modified-Since", s.modified)
	}
	return request, nil
}

// body reads a complete body.
func (s *Source) body(answer *nethttp.Response) ([]byte, error) {
	// A body that ends with its connection may have been cut off. A packed one has its length at its end.
	ends := answer.ContentLength >= 0 || len(answer.TransferEncoding) > 0 || answer.ProtoMajor >= 2 || answer.Uncompressed
	if !ends {
		return nil, fmt.Errorf("source: %s answers without Content-Length, so that a cut-off document looks complete: "+
			"let it send one", s.shown())
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, MaxDocument+1))
	switch {
	case err != nil:
		return nil, s.failure(err)
	case len(text) > MaxDocument:
		return nil, fmt.Errorf("source: the document of %s is larger than %d MiB: divide it, or use another source",
			s.shown(), MaxDocument>>20)
	}
	return text, nil
}

// failure adds advice to an error of the client, without the query of the URL, which may have secrets.
func (s *Source) failure(err error) error {
	if bad, found := errors.AsType[*url.Error](err); found {
		err = bad.Err
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("source: %s did not send the whole document within %v: raise timeout, or make it faster",
			s.shown(), s.config.Timeout)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("source: %s closed the connection within the document: %w", s.shown(), err)
	}
	return fmt.Errorf("source: %s: %w%s", s.shown(), err, source.TLSAdvice(err, "source.http.tls"))
}

// shown gives the URL without its query.
func (s *Source) shown() string {
	return (&url.URL{Scheme: s.at.Scheme, Host: s.at.Host, Path: s.at.Path}).String()
}
