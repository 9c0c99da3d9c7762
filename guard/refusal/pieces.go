package refusal

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/headgate/headgate/rule"
)

// field is what a placeholder stands for.
type field uint8

// The fields.
const (
	literal field = iota
	retryAfter
	reset
	remaining
	status
	limit
	policy
	title
	reason
	errorType
	detail
	key
	requestID
)

const (
	// lastNumber is the last field that is a number, which needs no escaping.
	lastNumber = status
	// firstSent is the first field with text of the client.
	firstSent = key
)

// fieldNames has the placeholders, in the order of the constants.
var fieldNames = [...]string{
	"", "retry_after", "reset", "remaining", "status", "limit", "policy", "title", "reason", "error_type", "detail", "key", "request_id",
}

// Placeholders lists the names of the placeholders.
func Placeholders() []string { return append([]string(nil), fieldNames[1:]...) }

// piece is a literal text, or a placeholder.
type piece struct {
	text  string
	field field
	esc   escape
	at    int // the offset of the placeholder in the whole text
}

// Values replace the placeholders of one answer.
type Values struct {
	// RetryAfter and Reset are in seconds; 0 stands for a time that is not known. Remaining is in units.
	RetryAfter, Reset, Remaining int64
	Status                       int
	Policy, Title, Reason        string
	ErrorType                    string
	Limit, Detail, Key           []byte
	RequestID                    string
}

// UsesDetail reports whether an answer needs Values.Detail, UsesKey whether it needs Values.Key, and so on.
func (t *Template) UsesDetail() bool { return t.uses&(1<<detail) != 0 }

// UsesKey is UsesDetail for Values.Key.
func (t *Template) UsesKey() bool { return t.uses&(1<<key) != 0 }

// UsesLimit is UsesDetail for Values.Limit.
func (t *Template) UsesLimit() bool { return t.uses&(1<<limit) != 0 }

// UsesRequestID is UsesDetail for Values.RequestID.
func (t *Template) UsesRequestID() bool { return t.uses&(1<<requestID) != 0 }

// cut cuts a text at its placeholders. A placeholder is a brace, lower-case letters and underscores, and a brace. Other braces
// are text, because JSON and CSS have many.
func (t *Template) cut(text string, e escape, where string) ([]piece, error) {
	var pieces []piece
	from, count := 0, 0
	for i := 0; i < len(text); i++ {
		if text[i] != '{' {
			continue
		}
		n := strings.IndexFunc(text[i+1:], func(c rune) bool { return c != '_' && (c < 'a' || c > 'z') })
		if n <= 0 || text[i+1+n] != '}' {
			continue
		}
		name := text[i+1 : i+1+n]
		f := fieldOf(name)
		if f == literal {
			fix := "use one of {" + strings.Join(fieldNames[1:], "}, {") + "}; { " + name + " } with spaces is text"
			if near := rule.Nearest(name, fieldNames[1:]); near != "" {
				fix = "did you mean {" + near + "}? " + fix
			}
			return nil, &FieldError{Field: where, Problem: "has the placeholder {" + name + "}, which is not known", Fix: fix, Offset: i}
		}
		if count++; count > MaxPlaceholders {
			fix := fmt.Sprintf("use at most %d", MaxPlaceholders)
			return nil, &FieldError{Field: where, Problem: "has too many placeholders", Fix: fix, Offset: i}
		}
		if i > from {
			pieces = append(pieces, piece{text: text[from:i]})
		}
		pieces = append(pieces, piece{field: f, esc: e, at: i})
		t.uses |= 1 << f
		i += 1 + n
		from = i + 1
	}
	if from < len(text) {
		pieces = append(pieces, piece{text: text[from:]})
	}
	return pieces, nil
}

func fieldOf(name string) field {
	for i, known := range fieldNames {
		if known == name {
			return field(i)
		}
	}
	return literal
}

func (p *piece) append(b []byte, v *Values) []byte {
	switch p.field {
	case literal:
		return append(b, p.text...)
	case retryAfter:
		return strconv.AppendInt(b, v.RetryAfter, 10)
	case reset:
		return strconv.AppendInt(b, v.Reset, 10)
	case remaining:
		return strconv.AppendInt(b, v.Remaining, 10)
	case status:
		return strconv.AppendInt(b, int64(v.Status), 10)
	case limit:
		return appendEscaped(b, v.Limit, p)
	case policy:
		return appendEscaped(b, v.Policy, p)
	case title:
		return appendEscaped(b, v.Title, p)
	case reason:
		return appendEscaped(b, v.Reason, p)
	case errorType:
		return appendEscaped(b, v.ErrorType, p)
	case detail:
		return appendEscaped(b, v.Detail, p)
	case key:
		return appendEscaped(b, v.Key, p)
	default:
		return appendEscaped(b, v.RequestID, p)
	}
}

func appendPieces(b []byte, pieces []piece, v *Values) []byte {
	for i := range pieces {
		b = pieces[i].append(b, v)
	}
	return b
}

// HasBody reports whether a request with this Accept field gets a body of t. Otherwise it gets the problem document.
func (t *Template) HasBody(accept string) bool {
	return t.has && (t.style != HTML || acceptsHTML(accept))
}

// AppendBody appends the body.
func (t *Template) AppendBody(b []byte, v *Values) []byte { return appendPieces(b, t.body, v) }

// ByAccept reports whether the body depends on the Accept field.
func (t *Template) ByAccept() bool { return t.style == HTML }

// ContentType returns the lines of the field of this name, and Policy those of Content-Security-Policy, which is nil without one. The
// caller must not change them.
func (t *Template) ContentType() []string { return t.kind }

// Policy is documented at ContentType.
func (t *Template) Policy() []string { return t.policies }

// Header calls set with each further header field. A field without placeholders allocates nothing, and its lines must not be changed.
func (t *Template) Header(v *Values, set func(name string, lines []string)) {
	for i := range t.headers {
		h := &t.headers[i]
		if h.fixed != nil {
			set(h.name, h.fixed)
			continue
		}
		set(h.name, []string{strings.Trim(string(appendPieces(nil, h.pieces, v)), " ")})
	}
}

// String names the answer, for a summary of rules.
func (t *Template) String() string {
	switch {
	case t.style != Problem:
		return "style " + t.style.String()
	case t.has:
		return "body " + t.kind[0]
	default:
		return fmt.Sprintf("header fields: %d", len(t.headers))
	}
}

// acceptsHTML reports whether an Accept field names text/html. Browsers name it for a page. A program that fetches data does not.
func acceptsHTML(accept string) bool {
	for item := range strings.SplitSeq(accept, ",") {
		kind, parameters, _ := strings.Cut(item, ";")
		if !strings.EqualFold(strings.TrimSpace(kind), "text/html") {
			continue
		}
		for parameter := range strings.SplitSeq(parameters, ";") {
			name, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
			if strings.EqualFold(name, "q") && strings.Trim(value, "0.") == "" {
				return false // The quality 0 means that the client does not accept the type.
			}
		}
		return true
	}
	return false
}
