package ruletest

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

const (
	// defaultAddress is that of a client, from a range for documentation (RFC 5737), and defaultHost that of the service.
	defaultAddress = "198.51.100.1"
	defaultHost    = "api.example.com"
	clientPort     = 40000
)

// request makes the request of a step, as a server reads it.
func (t *trial) request(s *step) (*http.Request, error) {
	var text strings.Builder
	host := defaultHost
	for _, f := range s.header {
		if f.name == "Host" {
			host = f.value
			continue
		}
		value := f.value
		if t.Fill != nil {
			value = t.Fill(value)
		}
		fmt.Fprintf(&text, "%s: %s\r\n", f.name, value)
	}
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(
		s.method + " " + s.target + " HTTP/1.1\r\nHost: " + host + "\r\n" + text.String() + "\r\n")))
	if err != nil {
		return nil, fmt.Errorf("a server would refuse this request: %w", err)
	}
	from := s.from
	if from == "" {
		from = defaultAddress
	}
	address, err := netip.ParseAddr(from)
	if err != nil {
		return nil, fmt.Errorf("%q is no address: write it like from 192.0.2.1", from)
	}
	r.RemoteAddr = netip.AddrPortFrom(address, clientPort).String()
	if s.as != "" {
		certificate := &x509.Certificate{Subject: pkix.Name{CommonName: strings.TrimPrefix(s.as, "CN=")}}
		r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{certificate}}}
	}
	return r.WithContext(t.ctx), nil
}

// compare notes what differs between an answer and the expectation of its step. marks has the fields of the request to the service.
func (x *exchange) compare(marks http.Header) {
	var texts []string
	if got := x.answer.Code; got != x.step.status {
		texts = append(texts, fmt.Sprintf("status %d%s, want %d", got, x.decided, x.step.status))
	}
	if waited := x.waited.Round(10 * time.Millisecond); waited != x.step.waits {
		texts = append(texts, fmt.Sprintf("waits %v%s, want %v", waited, x.decided, x.step.waits))
	}
	texts = append(texts, differing("", x.answer.Header(), x.step.want)...)
	texts = append(texts, differing("service ", marks, x.step.wantMarks)...)
	if len(texts) == 0 || len(x.differences) == mostDifferences {
		return
	}
	x.differences = append(x.differences, Difference{
		x.step.line, fmt.Sprintf("%s %s: %s", x.step.method, x.step.target, strings.Join(texts, "; ")),
	})
}

func differing(where string, got http.Header, want []field) (texts []string) {
	for _, f := range want {
		if value := strings.Join(got.Values(f.name), ", "); value != f.value {
			texts = append(texts, fmt.Sprintf("%s%s is %q, want %q", where, f.name, value, f.value))
		}
	}
	return texts
}
