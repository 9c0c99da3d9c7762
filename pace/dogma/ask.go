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
	readTime     = 15 * time.Second // for an answer that the server need not wait for
	answerMargin = 5 * time.Second  // for a watch's answer to come, after the server has waited
)

// answer is what the server says of the document.
type answer struct {
	revision int64 // 0 when a watch has found no change
	content  []byte
}

// ask reads the document as it is now. With a revision that is known it is a watch: it
// waits until the server has a newer revision of another content.
func (s *Source) ask(ctx context.Context, known int64) (answer, error) {
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
		return answer{}, s.failure(token, "cannot be asked: "+reason(err, allowed))
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

// response is what was sent back: up to a byte more than maxAnswer of it.
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
		// Whole seconds: the server refuses all else.
		req.Header.Set("Prefer", fmt.Sprintf("wait=%d, notify-entry-not-found=true", int64(s.wait/time.Second)))
	}
	res, err := s.client.Do(req)
	if err != nil {
		return response{}, err
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	err = errors.Join(err, res.Body.Close())
	// What echoes the request has the token in it, and parts of that end up in errors.
	kind := hide(token, res.Header.Get("Content-Type"))
	return response{status: res.StatusCode, kind: kind, body: []byte(hide(token, string(body)))}, err
}

// reason says why there is no answer, without the address, which is said already.
func reason(err error, allowed time.Duration) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("no whole answer came within %v", allowed)
	}
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		err = failed.Err
	}
	return err.Error()
}

// entry is a file in an answer. What else the server says of it is not used.
type entry struct {
	Revision int64           `json:"revision"`
	Path     string          `json:"path"`
	Type     string          `json:"type"`
	Content  json.RawMessage `json:"content"`
}

// parse reads an entry, or for a watch an entry and its revision.
func (s *Source) parse(got response, known int64) (answer, error) {
	if media, _, err := mime.ParseMediaType(got.kind); err != nil || media != "application/json" {
		return answer{}, fmt.Errorf("answers with %.60q instead of application/json: does URL lead to Central Dogma?", got.kind)
	}
	if len(got.body) > maxAnswer {
		return answer{}, fmt.Errorf("answers with more than %d bytes: use JSONPath to pick the provider's object out", maxAnswer)
	}
	var said struct {
		entry

		Entry *entry `json:"entry"`
	}
	if err := json.Unmarshal(got.body, &said); err != nil {
		return answer{}, fmt.Errorf("answers with what is no entry: %w: does URL lead to Central Dogma?", err)
	}
	file := &said.entry
	if known > 0 {
		file = said.Entry
	}
	switch {
	case file == nil || file.Path != s.path || said.Revision < 1 || said.Revision > math.MaxInt32:
		return answer{}, errors.New("answers without the file and its revision: does Path name one file?")
	case file.Type != "JSON":
		return answer{}, fmt.Errorf("has a file of type %.20q there: commit the document as JSON", file.Type)
	}
	return answer{revision: said.Revision, content: file.Content}, nil
}

// refusal says why the server did not give the document, and what helps.
func (r response) refusal() string {
	var said struct {
		Exception string `json:"exception"`
		Message   string `json:"message"`
	}
	_ = json.Unmarshal(r.body, &said) // What cannot be read is left out.
	text := "answers " + strconv.Itoa(r.status)
	if said.Message != "" {
		text += fmt.Sprintf(" %.200q", said.Message)
	}
	switch {
	case r.status/100 == 3:
		return text + ": redirects are not followed: write the address of the server itself into URL"
	case r.status == http.StatusUnauthorized || r.status == http.StatusForbidden:
		return text + ": give a token that is active and may read the repository"
	case strings.HasSuffix(said.Exception, ".RevisionNotFoundException"):
		return text + ": it was set back to a backup, or a replica is behind"
	case r.status == http.StatusNotFound:
		return text + ": put the document there, or mend Project, Repository and Path"
	}
	return text
}

// failure makes an error of what the server or the transport has said: bounded, and
// without the token.
func (s *Source) failure(token, said string) error {
	const most = 600
	said = hide(token, said)
	if len(said) > most {
		said = strings.ToValidUTF8(said[:most], "") + "…"
	}
	return fmt.Errorf("dogma: the server of %s %s", s.name, said)
}
