// Package calls has what the calls of the admin listener share: which clients and web pages may send them, their parameters,
// and the forms of answers and failures. The calls themselves are in the folders of their features.
package calls

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/internal/config"
)

// Call is a pattern of http.ServeMux with the scope that its clients need; 0 is for files without data, which are open to everyone. Its
// handler refuses web pages of other sites.
type Call struct {
	Pattern string
	Scope   config.Scope
	Handler http.HandlerFunc
}

// Wrapper is a component that answers calls of other components in their place, for a fleet.
type Wrapper interface {
	// Wrap gives the call to serve in place of one, which it may use. It returns other calls as they are.
	Wrap(call Call) Call
}

// Failure is an answer with its status.
type Failure struct {
	admin.Failure

	Status int
}

// Failed makes an answer with its status.
func Failed(f admin.Failure, status int) *Failure { return &Failure{f, status} }

// BadRequest says what is wrong with a call, and how to correct it.
func BadRequest(text string) *Failure {
	return &Failure{admin.Failure{Code: admin.CodeBadRequest, Error: text}, http.StatusBadRequest}
}

// Unavailable says that the source or the store did not answer.
func Unavailable(err error) *Failure {
	return &Failure{admin.Failure{Code: admin.CodeUnavailable, Error: err.Error()}, http.StatusServiceUnavailable}
}

// FaultOf gives a fault of a configuration as a document.
func FaultOf(f *config.Fault) admin.ReloadFault {
	return admin.ReloadFault{
		File: f.File, Line: f.Line, Column: f.Column, Field: f.Path, Problem: f.Problem, Fix: f.Fix, Text: f.String(),
	}
}

// Fail answers with a failure.
func Fail(log *slog.Logger, w http.ResponseWriter, f *Failure) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.Status)
	WriteJSON(log, w, f.Failure)
}

// ReadJSON reads a body of at most so many bytes with one JSON document, whose fields into has. example is a valid body.
func ReadJSON(w http.ResponseWriter, r *http.Request, most int64, into any, example string) *Failure {
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, most))
	body.DisallowUnknownFields()
	err := body.Decode(into)
	if err == nil {
		if _, more := body.Token(); errors.Is(more, io.EOF) {
			return nil
		}
		err = errors.New("a second value follows")
	}
	return BadRequest("the body is not valid (" + strings.TrimPrefix(err.Error(), "json: ") + "): write " + example)
}

// WriteJSON sends value as indented JSON.
func WriteJSON(log *slog.Logger, w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		log.Debug("client did not read the whole answer", "error", err)
	}
}

// WriteText sends a line of text.
func WriteText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n")
}

// DefaultPage is the number of entries of a page, unless the call names one.
const DefaultPage = 100

// PageSize reads the number of entries of a page.
func PageSize(text string, standard, most int) (int, *Failure) {
	if text == "" {
		return standard, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, BadRequest("limit must be a number from 1 to " + strconv.Itoa(most))
	}
	return n, nil
}

const maxReason = 1024

// Terms are what a change says beside the new text.
type Terms struct {
	Revision int64
	DryRun   bool
	// Hurried says that the caller does not wait until the change is in force.
	Hurried bool
	Reason  string
}

// CheckReason refuses a reason that a record cannot have.
func CheckReason(text string) *Failure {
	invisible := func(c rune) bool { return !unicode.IsPrint(c) }
	if len(text) > maxReason || !utf8.ValidString(text) || strings.ContainsFunc(text, invisible) {
		return BadRequest("reason must be one line of at most " + strconv.Itoa(maxReason) + " bytes")
	}
	return nil
}

// TermsOf reads the terms of a change. revised says that it needs the revision.
func TermsOf(r *http.Request, revised bool) (t Terms, f *Failure) {
	query := r.URL.Query()
	switch query.Get("dry_run") {
	case "", "0":
	case "1":
		t.DryRun = true
	default:
		return t, BadRequest("dry_run must be 1, which only checks the change, or 0")
	}
	t.Reason = query.Get("reason")
	if f := CheckReason(t.Reason); f != nil {
		return t, f
	}
	if !revised {
		return t, nil
	}
	switch query.Get("wait") {
	case "", "1":
	case "0":
		t.Hurried = true
	default:
		return t, BadRequest("wait must be 0, which does not wait until the change is in force, or 1")
	}
	var err error
	if t.Revision, err = strconv.ParseInt(query.Get("revision"), 10, 64); err != nil || t.Revision < 0 {
		return t, BadRequest("revision is missing or is not valid: read the object, and write its revision; 0 makes a new object")
	}
	return t, nil
}
