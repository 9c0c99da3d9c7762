package proxy

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/headgate/headgate/cmd/internal/http1"
	"github.com/headgate/headgate/cmd/internal/http1/client"
	"github.com/headgate/headgate/guard"
)

// sends reports whether the own client sends a request. Upgrades, expectations and trailers
// are left to net/http.
func (s *settings) sends(r *http.Request, l *http1.List) bool {
	return s.client != nil && len(r.Trailer) == 0 && !l.Has("Upgrade") && !l.Has("Expect") &&
		strings.IndexByte(r.Host, '%') < 0 && // The transport removes the zone of an address.
		!mayLackBody(r)
}

// mayLackBody reports whether a body of unknown length may be empty, so that the service must get
// a request without a body. HTTP/2 clients end a stream with an empty frame. The transport reads
// the first byte before it decides.
func mayLackBody(r *http.Request) bool {
	if r.ContentLength >= 0 || len(r.TransferEncoding) > 0 {
		return false
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodDelete, http.MethodOptions, "PROPFIND", "SEARCH":
		return true
	}
	return false
}

// call is a request to the upstream and its answer, which are used again.
type call struct {
	request client.Request
	answer  client.Answer
}

// errUnaskedUpgrade means that the upstream changed the protocol without being asked.
var errUnaskedUpgrade = errors.New("proxy: the upstream answered 101 to a request without Upgrade")

// send sends a request to the upstream with the own client, and its answer to the client.
// The fields of the request are changed.
func (x *exchange) send(r *http.Request) {
	s, c := x.settings, &x.call
	s.direct(r, x.fields, entryOf(x).peerOf(r))
	c.request = client.Request{Method: r.Method, Target: r.URL.RequestURI(), Host: r.Host, Header: x.fields, Interim: x.informs}
	if r.ContentLength != 0 && r.Body != nil {
		c.request.Body, c.request.Length = r.Body, r.ContentLength
	}
	err := s.client.Do(r.Context(), &c.request, &c.answer)
	c.request = client.Request{}
	if err != nil {
		s.proxy.failed(x, r, err)
		return
	}
	defer c.answer.Close()
	if err := x.begin(&c.answer); err != nil {
		s.proxy.failed(x, r, err)
		return
	}
	if err := x.copy(&c.answer); err != nil && !x.spent {
		s.proxy.log.Debug("could not pass on an answer", "error", err)
		panic(http.ErrAbortHandler) //nolint:forbidigo // because net/http has no other way to abort.
	}
	if !x.spent {
		x.trail(&c.answer)
	}
}

// direct changes a request and its fields for the upstream, as rewrite does. from is the peer.
func (s *settings) direct(r *http.Request, l *http1.List, from address) {
	trailers := httpguts.HeaderValuesContainsToken(l.Lines("Te"), "trailers")
	removeHopByHop(l, forwardedNames...) // describe decides about these.
	if trailers {
		l.Add("Te", "trailers")
	}
	l.Delete("Forwarded")
	r.URL.RawQuery = writableQuery(r.URL.RawQuery)
	s.describe(l, r, from)
}

// describe writes who the client is into the fields for the upstream, and removes the client's own claims.
func (s *settings) describe(l *http1.List, r *http.Request, from address) {
	g := s.proxy.guard
	id := g.Identity()
	setForwarded(l, r, from, id.Trusts)
	dropSpoofedHeaders(l, from.Addr, id, g.Reads().Headers, g.Marks())
}

// removeHopByHop removes the fields that belong to one connection, and those that Connection
// names (RFC 9110, section 7.6.1) beside those that are kept.
func removeHopByHop(l *http1.List, kept ...string) {
	names := nominated(l)
	l.DeleteFunc(func(name string) bool {
		if isHopByHop(name) {
			return true
		}
		_, found := slices.BinarySearch(names, name)
		return found && !slices.Contains(kept, name)
	})
}

func isHopByHop(name string) bool {
	switch name {
	case "Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding",
		"Upgrade":
		return true
	}
	return false
}

// inform passes an informational response on.
func (x *exchange) inform(status int, h http.Header) error {
	header := x.Header()
	for name, values := range h {
		header[name] = append(header[name], values...)
	}
	x.WriteHeader(status)
	clear(header)
	return nil
}

// begin writes the header of the answer.
func (x *exchange) begin(a *client.Answer) error {
	switch {
	case a.Status == http.StatusSwitchingProtocols:
		return errUnaskedUpgrade
	case writableStatus(a.Status) != nil:
		return writableStatus(a.Status)
	}
	removeHopByHop(&a.Header)
	if len(a.Trailer) > 0 {
		names := make([]string, 0, len(a.Trailer))
		for name := range a.Trailer {
			names = append(names, name)
		}
		a.Header.Add("Trailer", strings.Join(names, ", "))
	}
	x.announced = len(a.Trailer)
	x.WriteFields(a.Status, &a.Header)
	return nil
}

// copy copies the body of the answer. Whenever it has to wait for the upstream, the client
// has what has arrived.
func (x *exchange) copy(a *client.Answer) error {
	if b := a.Buffered(); len(b) > 0 {
		if _, err := x.Write(b); err != nil {
			return err
		}
	}
	if x.spent || a.Length >= 0 && int64(x.written) >= a.Length {
		return nil
	}
	if done, err := x.splice(a); done || err != nil {
		return err
	}
	buffers := &x.settings.proxy.buffers
	buf := buffers.Get()
	defer buffers.Put(buf)
	for {
		if err := x.FlushError(); err != nil {
			return err
		}
		n, err := a.Read(buf)
		if n > 0 {
			if _, err := x.Write(buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case x.spent:
			return nil
		case err == io.EOF: //nolint:errorlint // Read returns io.EOF itself.
			return nil
		case err != nil:
			return fmt.Errorf("proxy: reading the answer: %w", err)
		}
	}
}

// trail sets the trailers of the answer.
func (x *exchange) trail(a *client.Answer) {
	if len(a.Trailer) == 0 {
		return
	}
	if x.FlushError() != nil {
		x.end = guard.ClientLeft
	}
	prefix := ""
	if len(a.Trailer) != x.announced {
		prefix = http.TrailerPrefix
	}
	for name, values := range a.Trailer {
		if x.Header()[prefix+name] == nil { // The header was written from a List. With a map, net/http sends its value as a trailer too.
			values = slices.Concat(a.Header.Lines(prefix+name), values)
		}
		for _, value := range values {
			x.Header().Add(prefix+name, value)
		}
	}
}
