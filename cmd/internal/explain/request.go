package explain

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// exampleIP is the default client address, from a range for documentation (RFC 5737).
const exampleIP = "192.0.2.1"

// Flags are the values of the flags of headgate check that describe a request.
type Flags struct {
	Request     string   // Method and target, like "GET /v1/product".
	Header      []string // Lines, like "X-Client-Id: a".
	IP, Subject string   // "" means exampleIP, and no certificate.
	Times       int
}

// Parse reads the request as a server does, so that rules see the same values. Its errors
// are errors of usage.
func (f *Flags) Parse(ctx context.Context) (*Request, error) {
	if f.Times < 1 || f.Times > maxTimes {
		return nil, fmt.Errorf("check: --times is %d: write 1 to %d", f.Times, maxTimes)
	}
	line, err := requestLine(f.Request)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	text.WriteString(line + "\r\n")
	for _, header := range f.Header {
		if err := checkHeader(header); err != nil {
			return nil, err
		}
		text.WriteString(header + "\r\n")
	}
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text.String() + "\r\n")))
	if err != nil {
		return nil, fmt.Errorf("check: a server would refuse this request: %w: compare it with 'GET /v1/product'", err)
	}
	if r.RemoteAddr, err = remoteOf(f.IP); err != nil {
		return nil, err
	}
	if f.Subject != "" {
		name, err := parseSubject(f.Subject)
		if err != nil {
			return nil, err
		}
		r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{Subject: name}}}}
	}
	return &Request{http: r.WithContext(ctx), times: f.Times}, nil
}

// HTTP returns the request.
func (r *Request) HTTP() *http.Request { return r.http }

// requestLine checks METHOD TARGET. A protocol may follow.
func requestLine(text string) (string, error) {
	words := strings.Fields(text)
	if len(words) == 3 && strings.HasPrefix(words[2], "HTTP/") {
		words = words[:2]
	}
	const example = "write it like 'GET /v1/product'"
	switch {
	case len(words) == 0:
		return "", errors.New("check: the request is empty: " + example)
	case len(words) == 1 && (strings.HasPrefix(words[0], "/") || strings.Contains(words[0], "://")):
		return "", fmt.Errorf("check: the request %q has no method: write 'GET %s'", text, words[0])
	case len(words) == 1:
		return "", fmt.Errorf("check: the request %q has no path: %s", text, example)
	case len(words) > 2:
		return "", fmt.Errorf("check: the request %q has a space in its path: write %%20 for it, as clients do", text)
	}
	method, target := words[0], words[1]
	switch upper := strings.ToUpper(method); {
	case method != upper && slices.Contains(methodNames[:], upper):
		return "", fmt.Errorf("check: the method %q does not exist: methods are case-sensitive: write %s", method, upper)
	case !strings.HasPrefix(target, "/") && !strings.Contains(target, "://") && target != "*":
		return "", fmt.Errorf("check: the path %q does not begin with a slash: write '%s /%s'", target, method, target)
	}
	return method + " " + target + " HTTP/1.1", nil
}

// methodNames are the methods for which a wrong case is reported.
var methodNames = [...]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE"}

// checkHeader refuses a text that cannot be one header line.
func checkHeader(text string) error {
	name, _, colon := strings.Cut(text, ":")
	const example = "write it like -H 'X-Client-Id: a'"
	switch {
	case !colon:
		return fmt.Errorf("check: the header %q has no colon: %s", text, example)
	case name == "":
		return fmt.Errorf("check: the header %q has no name before its colon: %s", text, example)
	case strings.ContainsAny(name, " \t"):
		return fmt.Errorf("check: the header's name %q has a space in it: %s", name, example)
	case strings.ContainsFunc(text, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }):
		return fmt.Errorf("check: the header %q has a control character in it: leave it out", text)
	}
	return nil
}

// remoteOf returns the address of the peer in the form of http.Request.RemoteAddr.
func remoteOf(text string) (string, error) {
	const port = 40000
	switch text {
	case "":
		text = exampleIP
	case "unix":
		return "@", nil
	}
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return "", fmt.Errorf("check: %q is not an address: write --ip 192.0.2.1, --ip 2001:db8::1 or --ip unix", text)
	}
	return netip.AddrPortFrom(ip, port).String(), nil
}
