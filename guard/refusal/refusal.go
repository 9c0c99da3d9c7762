// Package refusal has the answers to refused requests that replace the problem document: ready ones in the form of well-known APIs,
// and those that an operator writes with placeholders.
//
//	t, err := refusal.New(refusal.Response{ContentType: "text/plain", Body: "Come back in {retry_after} seconds.\n"})
//	...
//	rule.Exceed.Response = t
//
// A Response is checked and cut into pieces once, by New. A Template then writes an answer without an allocation. Each value that
// replaces a placeholder is escaped for the type of the body, so that a client cannot write markup, members or header fields.
package refusal

import (
	"errors"
	"fmt"
	"mime"
	"net/textproto"
	"strings"
	"unicode/utf8"
)

// Style is the form of a refusal's body.
type Style uint8

const (
	// Problem is the problem document of RFC 9457, or Response.Body if there is one.
	Problem Style = iota
	// HTML is a page for clients that accept text/html, and the problem document for all others.
	HTML
	// OpenAI is the error of OpenAI's API.
	OpenAI
	// Anthropic is the error of Anthropic's API.
	Anthropic
	// S3 is the error SlowDown of the S3 API, in XML.
	S3
)

// styleNames has the words of configurations, in the order of the constants.
var styleNames = [...]string{"problem", "html", "openai", "anthropic", "s3"}

// String gives the word that configurations use.
func (s Style) String() string { return styleNames[min(int(s), len(styleNames)-1)] }

// Styles lists every style, in the order of the constants.
func Styles() []Style { return []Style{Problem, HTML, OpenAI, Anthropic, S3} }

// Bounds of a Response.
const (
	// MaxBody bounds a body, in bytes: refusals must stay cheaper than the requests.
	MaxBody = 64 << 10
	// MaxHeaders bounds the header fields, and MaxHeaderValue the bytes of each one.
	MaxHeaders     = 16
	MaxHeaderValue = 1024
	// MaxPlaceholders bounds the placeholders of a body or a field, because a client chooses the length of some values.
	MaxPlaceholders = 64
	// maxValue bounds the bytes of a value before it is escaped. The rest is left out.
	maxValue = 512
)

// Response describes an answer. The zero Response is the problem document.
type Response struct {
	Style Style
	// Body is a text with placeholders, such as {retry_after}. Only Problem and HTML can have one. ContentType is its type; with
	// HTML it is text/html.
	Body, ContentType string
	// Headers are further header fields. Values may have placeholders.
	Headers []Header
}

// Header is one header field of an answer.
type Header struct{ Name, Value string }

// A FieldError says which part of a Response is not valid.
type FieldError struct {
	// Field is body, content_type or headers; Header is the name of the header field.
	Field, Header string
	// Problem and Fix say what is wrong, and what to write. Offset is the place in the text, in bytes.
	Problem, Fix string
	Offset       int
}

// Error implements error.
func (e *FieldError) Error() string {
	where := e.Field
	if e.Header != "" {
		where += "." + e.Header
	}
	return fmt.Sprintf("refusal: %s %s: %s", where, e.Problem, e.Fix)
}

// Template is a Response that is ready to be written. It is immutable. nil is the problem document.
type Template struct {
	style    Style
	has      bool // a body in place of the problem document
	kind     []string
	body     []piece
	headers  []header
	uses     uint32
	policies []string // the Content-Security-Policy of the ready page; nil without one
}

type header struct {
	name   string
	fixed  []string // nil if the value has placeholders
	pieces []piece
}

// New checks r and prepares it. An error is a *FieldError, or says that the Style is unknown.
func New(r Response) (*Template, error) {
	if int(r.Style) >= len(styleNames) {
		return nil, fmt.Errorf("refusal: the style %d is not known: use a constant of this package", r.Style)
	}
	t := &Template{style: r.Style}
	if err := t.setBody(&r); err != nil {
		return nil, err
	}
	if len(r.Headers) > MaxHeaders {
		return nil, &FieldError{
			Field: "headers", Problem: fmt.Sprintf("has %d fields", len(r.Headers)), Fix: fmt.Sprintf("use at most %d", MaxHeaders),
		}
	}
	for _, h := range r.Headers {
		if err := t.addHeader(h); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *Template) setBody(r *Response) error {
	ready, own := readyBody(r.Style), r.Body != ""
	switch {
	case own && r.Style != Problem && r.Style != HTML:
		return &FieldError{Field: "body", Problem: "has no effect with style " + r.Style.String(), Fix: "remove it, or remove the style"}
	case r.ContentType != "" && !own:
		return &FieldError{Field: "content_type", Problem: "has no effect without a body", Fix: "remove it, or write a body"}
	case r.ContentType != "" && r.Style == HTML:
		return &FieldError{Field: "content_type", Problem: "has no effect with style html", Fix: "remove it, or remove the style"}
	case own && r.Style == HTML:
		ready.kind = htmlType
		ready.text, ready.policy = r.Body, ""
	case own && r.ContentType == "":
		const fix = "write the type of the body, like content_type: application/json"
		return &FieldError{Field: "content_type", Problem: "is missing", Fix: fix}
	case own:
		ready.kind, ready.text = r.ContentType, r.Body
	}
	if ready.text == "" {
		return nil
	}
	kind, e, err := mediaType(ready.kind)
	if err != nil {
		return err
	}
	if t.body, err = t.compileBody(ready.text, e); err != nil {
		return err
	}
	t.has, t.kind = true, []string{kind}
	if ready.policy != "" {
		t.policies = []string{ready.policy}
	}
	return nil
}

// mediaType returns a content type with its charset, and how to escape values in such a body.
func mediaType(text string) (string, escape, error) {
	fault := func(problem, fix string) (string, escape, error) {
		return "", 0, &FieldError{Field: "content_type", Problem: problem, Fix: fix}
	}
	kind, parameters, err := mime.ParseMediaType(text)
	if err != nil || !strings.Contains(kind, "/") {
		return fault("is not a media type", "write it like text/html or application/json")
	}
	if charset := parameters["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return fault("has the charset "+charset, "use utf-8: configurations are UTF-8")
	}
	e := escapeOther
	switch {
	case kind == "text/html":
		e = escapeHTML
	case kind == "text/plain":
		e = escapePlain
	case kind == "application/json" || kind == "text/json" || strings.HasSuffix(kind, "+json"):
		return mime.FormatMediaType(kind, parameters), escapeJSON, nil
	case kind == "application/xml" || kind == "text/xml" || strings.HasSuffix(kind, "+xml"):
		e = escapeXML
	case !strings.HasPrefix(kind, "text/"):
		return mime.FormatMediaType(kind, parameters), e, nil
	}
	if parameters == nil {
		parameters = map[string]string{}
	}
	parameters["charset"] = "utf-8" // Without it, a browser may guess a charset in which other bytes are markup.
	return mime.FormatMediaType(kind, parameters), e, nil
}

func (t *Template) compileBody(text string, e escape) ([]piece, error) {
	fault := func(at int, problem, fix string) ([]piece, error) {
		return nil, &FieldError{Field: "body", Problem: problem, Fix: fix, Offset: at}
	}
	switch {
	case len(text) > MaxBody:
		return fault(0, fmt.Sprintf("is %d bytes long", len(text)), fmt.Sprintf("use at most %d", MaxBody))
	case !utf8.ValidString(text):
		return fault(0, "is not UTF-8", "save it as UTF-8")
	}
	pieces, err := t.cut(text, e, "body")
	if err != nil {
		return nil, err
	}
	if at, problem, fix := misplaced(text, pieces, e); problem != "" {
		return fault(at, problem, fix)
	}
	return pieces, nil
}

func (t *Template) addHeader(h Header) error {
	fault := func(problem, fix string) error {
		return &FieldError{Field: "headers", Header: h.Name, Problem: problem, Fix: fix}
	}
	name := textproto.CanonicalMIMEHeaderKey(h.Name)
	bad := strings.IndexFunc(h.Value, func(c rune) bool { return c < ' ' || c > '~' })
	switch why := Reserved(name); {
	case !isToken(name):
		return fault("is not the name of a header", "write only letters, digits, - and _, like X-Reason")
	case why != "":
		return fault(why, "remove it, or use another header")
	case len(h.Value) > MaxHeaderValue:
		return fault(fmt.Sprintf("has a value of %d bytes", len(h.Value)), fmt.Sprintf("use at most %d", MaxHeaderValue))
	case bad >= 0:
		return fault("has a value with a character that is not printable ASCII", "use printable ASCII")
	case strings.TrimSpace(h.Value) != h.Value || h.Value == "":
		return fault("has a value that is empty, or begins or ends with a space", "write a value like quota")
	}
	for i := range t.headers {
		if t.headers[i].name == name {
			return fault("is set twice", "remove one of them")
		}
	}
	pieces, err := t.cut(h.Value, escapeHeader, "headers")
	if err != nil {
		var field *FieldError
		if errors.As(err, &field) {
			field.Header = h.Name
		}
		return err
	}
	one := header{name: name, pieces: pieces}
	if len(pieces) == 1 && pieces[0].field == 0 {
		one.fixed = []string{h.Value}
	}
	t.headers = append(t.headers, one)
	return nil
}

// Reserved says why an answer cannot set a header field. The name must be in canonical form. "" means that it can.
func Reserved(name string) string {
	switch name {
	case "Content-Length", "Content-Type", "Content-Encoding", "Content-Range", "Date", "Cache-Control", "Vary", "X-Content-Type-Options":
		return "is written with the body"
	case "Retry-After", "X-Should-Retry", "Location", "X-Request-Id":
		return "is written by Headgate"
	case "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding",
		"Upgrade":
		return "belongs to the connection"
	}
	switch {
	case strings.HasPrefix(name, "Access-Control-"):
		return "is written by cors"
	case strings.HasPrefix(name, "Ratelimit"), strings.HasPrefix(name, "X-Ratelimit-"), strings.HasPrefix(name, "Headgate-"),
		strings.HasPrefix(name, "Grpc-"):
		return "is written by Headgate"
	}
	return ""
}

func isToken(name string) bool {
	return name != "" && len(name) <= 128 && strings.IndexFunc(name, func(c rune) bool {
		return c <= ' ' || c > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
	}) < 0
}
