package dogma

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	maxAnswer    = 64 << 10
	readTime     = 15 * time.Second // timeout of a read, which the server answers at once
	answerMargin = 5 * time.Second  // added to Wait for the timeout of a watch
)

// answer is the server's answer about the document.
type answer struct {
	revision int64 // 0 when a watch found no change
	content  []byte
}

// query reads the current document when known is 0. Otherwise it is a watch: it waits until
// a revision newer than known has other content.
func (s *Source) query(ctx context.Context, known int64) (answer, error) {
	token, err := s.token()
	if err != nil {
		return answer{}, err
	}
	allowed := readTime
	if known > 0 {
		allowed = s.wait + answerMargin
	}
	ctx, cancel := context.WithTimeout(ctx, allowed)
	defer cancel()
	got, err := s.send(ctx, known, token)
	if err != nil {
		return answer{}, s.failure(token, "did not answer: "+reason(err, allowed))
	}
	switch {
	case got.status == http.StatusNotModified && known > 0:
		return answer{}, nil
	case got.status != http.StatusOK:
		return answer{}, s.failure(token, got.refusal())
	}
	found, err := s.parse(got, known)
	if err != nil {
		return answer{}, s.failure(token, err.Error())
	}
	return found, nil
}

// response is the server's response, with at most maxAnswer+1 bytes of the body.
type response struct {
	status int
	kind   string
	body   []byte
}

func (s *Source) send(ctx context.Context, known int64, token string) (response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.address, http.NoBody)
	if err != nil {
		return response{}, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("User-Agent", "headgate-pace")
	if known > 0 {
		req.Header.Set("If-None-Match", strconv.FormatInt(known, 10))
		// The server refuses fractions of a second.
		req.Header.Set("Prefer", fmt.Sprintf("wait=%d, notify-entry-not-found=true", int64(s.wait/time.Second)))
	}
	res, err := s.client.Do(req)
	if err != nil {
		return response{}, err
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	err = errors.Join(err, res.Body.Close())
	// A response that echoes the request contains the token, and errors quote the response.
	kind := hide(token, res.Header.Get("Content-Type"))
	return response{status: res.StatusCode, kind: kind, body: []byte(hide(token, string(body)))}, err
}

// reason returns the cause of err without the URL, because failure adds the document's name.
func reason(err error, allowed time.Duration) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("no complete answer within %v", allowed)
	}
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		err = failed.Err
	}
	return err.Error()
}

// entry is a file in an answer, with the fields that this package uses.
type entry struct {
	Revision int64           `json:"revision"`
	Path     string          `json:"path"`
	Type     string          `json:"type"`
	Content  json.RawMessage `json:"content"`
}

// parse reads the answer to a read, which is an entry, or to a watch, which is a revision
// with an entry.
func (s *Source) parse(got response, known int64) (answer, error) {
	if media, _, err := mime.ParseMediaType(got.kind); err != nil || media != "application/json" {
		return answer{}, fmt.Errorf(
			"answered with content type %.60q instead of application/json: check that URL leads to Central Dogma", got.kind)
	}
	if len(got.body) > maxAnswer {
		return answer{}, fmt.Errorf("answered with more than %d bytes: use JSONPath to select the provider's object", maxAnswer)
	}
	var said struct {
		entry

		Entry *entry `json:"entry"`
	}
	if err := json.Unmarshal(got.body, &said); err != nil {
		return answer{}, fmt.Errorf("answered without a valid entry: %w: check that URL leads to Central Dogma", err)
	}
	file := &said.entry
	if known > 0 {
		file = said.Entry
	}
	switch {
	case file == nil || file.Path != s.path || said.Revision < 1 || said.Revision > math.MaxInt32:
		return answer{}, errors.New("answered without the file or its revision: check that Path names one file")
	case file.Type != "JSON":
		return answer{}, fmt.Errorf("has a file of type %.20q at Path: commit the document as JSON", file.Type)
	}
	return answer{revision: said.Revision, content: file.Content}, nil
}

// refusal returns the cause of a failed request, and what to do next.
func (r response) refusal() string {
	var said struct {
		Exception string `json:"exception"`
		Message   string `json:"message"`
	}
	_ = json.Unmarshal(r.body, &said) // An unreadable body leaves both fields empty.
	text := "answered " + strconv.Itoa(r.status)
	if said.Message != "" {
		text += fmt.Sprintf(" %.200q", said.Message)
	}
	switch {
	case r.status/100 == 3:
		return text + ": redirects are not followed: set URL to the address of the server itself"
	case r.status == http.StatusUnauthorized || r.status == http.StatusForbidden:
		return text + ": use an active token that may read the repository"
	case strings.HasSuffix(said.Exception, ".RevisionNotFoundException"):
		return text + ": the repository was restored from a backup, or a replica is stale"
	case r.status == http.StatusNotFound:
		return text + ": commit the document, or correct Project, Repository and Path"
	}
	return text
}

// failure returns an error with a text of the server or the transport, bounded and
// without the token.
func (s *Source) failure(token, said string) error {
	const most = 600
	said = hide(token, said)
	if len(said) > most {
		said = strings.ToValidUTF8(said[:most], "") + "…"
	}
	return fmt.Errorf("dogma: the server of %s %s", s.name, said)
}
