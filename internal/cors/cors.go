// Package cors lets pages of other origins read the answers of Headgate itself. Without its header fields, a browser hides a refusal
// from the page, which sees "Failed to fetch" and cannot wait for the time in Retry-After.
//
// The header fields of the service stay as they are: it decides who may read its own answers.
package cors

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/headgate/headgate"
)

// Any is the origin that permits pages of every origin.
const Any = "*"

// MaxOrigins bounds the origins.
const MaxOrigins = 1000

// Config describes a Policy.
type Config struct {
	// Origins may read the answers: exact origins, such as https://app.example.com, or only Any.
	Origins []string
	// Credentials lets pages read answers to requests with cookies or a client certificate. Any does not permit it.
	Credentials bool
	// CountPreflights makes rules count preflights of Origins too.
	CountPreflights bool
}

// An OriginError says which of Config.Origins is not valid.
type OriginError struct {
	Index        int
	Problem, Fix string
}

// Error implements error.
func (e *OriginError) Error() string {
	return fmt.Sprintf("cors: origin %d %s: %s", e.Index, e.Problem, e.Fix)
}

// Policy is a Config that is ready to be used. It is immutable. A nil Policy adds nothing.
type Policy struct {
	config  Config
	allowed map[string][]string // the lines of Access-Control-Allow-Origin
	any     bool
}

// New checks c. The error is an *OriginError, or says that Origins is empty or that Credentials need exact origins.
func New(c Config) (*Policy, error) {
	p := &Policy{allowed: make(map[string][]string, len(c.Origins)), config: c}
	p.config.Origins = slices.Clone(c.Origins)
	if len(c.Origins) == 0 || len(c.Origins) > MaxOrigins {
		return nil, fmt.Errorf("cors: there are %d origins: list 1 to %d of them", len(c.Origins), MaxOrigins)
	}
	for i, origin := range c.Origins {
		problem, fix := originFault(origin)
		switch {
		case problem != "":
			return nil, &OriginError{i, problem, fix}
		case p.allowed[origin] != nil:
			return nil, &OriginError{i, "is listed twice", "remove one of them"}
		case origin == Any && len(c.Origins) > 1:
			return nil, &OriginError{i, "permits every origin", "remove the other origins, or this one"}
		}
		p.allowed[origin], p.any = []string{origin}, origin == Any
	}
	if p.any && c.Credentials {
		return nil, errors.New("cors: credentials are not possible for every origin: list the origins, or remove credentials")
	}
	return p, nil
}

// Config returns what New got. The caller must not change its Origins.
func (p *Policy) Config() Config { return p.config }

// originFault says why a text is not an origin as browsers send it.
func originFault(origin string) (problem, fix string) {
	const example = "write it like https://app.example.com or http://localhost:3000, or *"
	if origin == Any {
		return "", ""
	}
	u, err := url.Parse(origin)
	switch {
	case origin == "null":
		return "is null, which pages of any origin can send", "list the origins of the pages"
	case strings.Contains(origin, Any):
		return "has a *, which stands only for every origin", "list each origin"
	case err != nil || u.Scheme == "" || u.Host == "" || u.Opaque != "":
		return "is not an origin", example
	case u.User != nil || u.Path != "" || strings.ContainsAny(origin, "?#"):
		return "has more than a scheme, a host and a port", "write it like " + u.Scheme + "://" + u.Host
	case strings.ToLower(origin) != origin:
		return "has capitals, which no browser sends", "write it like " + strings.ToLower(origin)
	case u.Scheme == "http" && u.Port() == "80" || u.Scheme == "https" && u.Port() == "443":
		return "has the default port, which no browser sends", "write it like " + u.Scheme + "://" + u.Hostname()
	case strings.IndexFunc(origin, func(c rune) bool { return c <= ' ' || c > '~' }) >= 0:
		return "has a character that is not ASCII", "write the host as browsers send it, such as xn--bcher-kva.example"
	}
	return "", ""
}

// Header is the header of a response that a Policy reads and changes. Names are in canonical form. The lines that a Policy sets are
// shared: no one may change them.
type Header interface {
	Lines(name string) []string
	Set(name string, lines []string)
}

// The header fields, in canonical form.
const (
	fieldOrigin      = "Access-Control-Allow-Origin"
	fieldCredentials = "Access-Control-Allow-Credentials"
	fieldExpose      = "Access-Control-Expose-Headers"
	fieldVary        = "Vary"
	origin           = "Origin"
	requestMethod    = "Access-Control-Request-Method"
)

// The lines that every Policy sets. They have no spare capacity, so that an append copies them.
var (
	variesTable      = []string{origin}
	credentialsTable = []string{"true"}
	exposedTable     = []string{
		"Retry-After, RateLimit, RateLimit-Policy, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, X-RateLimit-Limit, " +
			"X-RateLimit-Remaining, X-RateLimit-Reset, X-Should-Retry, X-Request-Id, Headgate-Warning, Headgate-Decision, " +
			"Grpc-Status, Grpc-Message, Grpc-Status-Details-Bin",
	}
)

// sent returns the origin of a request, if the policy lists it, as a line of Access-Control-Allow-Origin. The line is the one of the
// configuration, so that a client's own text is never in an answer.
func (p *Policy) sent(request headgate.Values) []string {
	if request == nil {
		return nil
	}
	from, found := request.Lookup(origin)
	switch {
	case !found:
		return nil
	case p.any:
		return p.allowed[Any]
	default:
		return p.allowed[from]
	}
}

// Own adds the fields to an answer of Headgate itself. It does nothing if the header already has Access-Control-Allow-Origin, which an
// outer handler has set.
func (p *Policy) Own(h Header, request headgate.Values) {
	if p == nil || len(h.Lines(fieldOrigin)) > 0 {
		return
	}
	switch lines := h.Lines(fieldVary); {
	case p.any || namesOrigin(lines): // The answer is the same for every origin, or caches know that it is not.
	case len(lines) == 0:
		h.Set(fieldVary, variesTable)
	default:
		h.Set(fieldVary, append(slices.Clip(lines), origin))
	}
	allowed := p.sent(request)
	if allowed == nil {
		return
	}
	h.Set(fieldOrigin, allowed)
	if p.config.Credentials {
		h.Set(fieldCredentials, credentialsTable)
	}
	if len(h.Lines(fieldExpose)) == 0 {
		h.Set(fieldExpose, exposedTable)
	}
}

// Expose lets pages read the rate limit fields of a service's answer. It does nothing unless the service permits the page to read the
// answer, and has left Access-Control-Expose-Headers out.
func (p *Policy) Expose(h Header) {
	if p != nil && len(h.Lines(fieldOrigin)) > 0 && len(h.Lines(fieldExpose)) == 0 {
		h.Set(fieldExpose, exposedTable)
	}
}

// Announce is Expose before the service has begun its answer. A field that the service sets later replaces this one.
func (p *Policy) Announce(h Header, request headgate.Values) {
	if p != nil && p.sent(request) != nil && len(h.Lines(fieldExpose)) == 0 {
		h.Set(fieldExpose, exposedTable)
	}
}

// namesOrigin reports whether a Vary field has Origin or *.
func namesOrigin(lines []string) bool {
	for _, line := range lines {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.TrimSpace(name); name == Any || strings.EqualFold(name, origin) {
				return true
			}
		}
	}
	return false
}

// Exempts reports whether a request is a preflight that rules do not count: OPTIONS from one of the origins, with
// Access-Control-Request-Method.
func (p *Policy) Exempts(method string, request headgate.Values) bool {
	if p == nil || p.config.CountPreflights || method != "OPTIONS" {
		return false
	}
	_, asks := request.Lookup(requestMethod)
	return asks && p.sent(request) != nil
}
