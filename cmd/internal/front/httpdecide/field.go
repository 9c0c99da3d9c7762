package httpdecide

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/headgate/headgate/rule"
)

// The checks of this file refuse values that a gateway or a service can read in another way than the rules do. Only values that
// all of them read in one way can be decided on.

// checkMethod checks that a method is a token of RFC 9110.
func checkMethod(method string) error {
	for i := range len(method) {
		switch c := method[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return errors.New("is not one method: send it as the client did, like GET")
		}
	}
	return nil
}

// checkHost checks a host, which is empty for a request of HTTP/1.0 without one.
func checkHost(host string) error {
	if _, _, ok := rule.ParseHost(host); !ok {
		return errors.New("is not one host: send a name or an address, and the port if the client sent one, like www.example.com or " +
			"[2001:db8::1]:8443")
	}
	return nil
}

// readTarget reads the target of the client's request. A target that gateways and services can read in different ways is
// refused. An absolute target names a second host. RFC 9112 has no #: url.ParseRequestURI takes # for a part of the path, but nginx
// sends the service only what comes before.
func (x *exchange) readTarget(method, uri string) error {
	if isPlainPath(uri) {
		x.target = url.URL{Path: uri}
		return nil
	}
	if uri[0] != '/' && (method != http.MethodOptions || uri != "*") {
		return errors.New("is not a path: send it without a scheme and a host, like /search?q=a")
	}
	for i := range len(uri) {
		switch c := uri[i]; {
		case c == '#':
			return errors.New("has a #, which gateways and services read in different ways: send it as %23, or nothing from it on")
		case c <= ' ' || c == 0x7f:
			return errors.New("has a blank or a control byte: send it as %20, or as the percent encoding of the byte")
		}
	}
	target, err := url.ParseRequestURI(uri)
	if err != nil {
		return errors.New("is not the target of a request: send it as the client did, like /search?q=a")
	}
	x.target = *target
	return nil
}

// isPlainPath reports whether a target is a path without a query, whose characters stand for themselves. url.ParseRequestURI gives
// the same URL for it, and allocates.
func isPlainPath(target string) bool {
	if target[0] != '/' {
		return false
	}
	for i := range len(target) {
		switch c := target[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', 'A' <= c && c <= 'Z', c == '/', c == '-', c == '.', c == '_', c == '~':
		default:
			return false
		}
	}
	return true
}
