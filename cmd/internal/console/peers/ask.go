package peers

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/internal/readfile"
)

const (
	// maxAnswer bounds an answer of a peer: a status of 10,000 rules, or a list of 10,000 bans. maxAnswers bounds those of all peers to one
	// call, and maxFanned the calls at a time. config.MemoryBound counts them.
	maxAnswer  = 4 << 20
	maxAnswers = 16 << 20
	maxFanned  = 2
	maxToken   = 4096
	// maxName bounds the name of an instance, as a configuration does.
	maxName = 64
	// maxCause bounds the text of an error of a peer.
	maxCause = 200
)

// statusError is an answer with another status than 200.
type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string { return fmt.Sprintf("answers %d: %s", e.code, e.text) }

// get reads a page of a peer into a document, and gives the name of the instance.
func (p *peer) get(ctx context.Context, page, authorization string, most int64, into any) (name string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	at := p.scheme + p.address + page
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, http.NoBody) //nolint:gosec // The configuration names the peers.
	if err != nil {
		return "", fmt.Errorf("peers: %w", err)
	}
	req.Host = "localhost" // An admin listener refuses unknown host names.
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	resp, err := p.client.Do(req) //nolint:gosec // As above.
	if err != nil {
		return "", err //nolint:wrapcheck // because causeOf looks at the error.
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	switch {
	case err != nil:
		return "", err //nolint:wrapcheck // As above.
	case resp.StatusCode != http.StatusOK:
		return "", &statusError{resp.StatusCode, firstLine(text)}
	case int64(len(text)) > most:
		return "", fmt.Errorf("has an answer of more than %d bytes", most)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return "", errors.New("is no admin.listen of headgate: correct admin.peers")
	}
	name = resp.Header.Get(admin.InstanceHeader)
	return name[:min(len(name), maxName)], nil
}

func firstLine(text []byte) string {
	line, _, _ := strings.Cut(string(text[:min(len(text), maxCause)]), "\n")
	return strings.ToValidUTF8(line, "")
}

// causeOf says in a few words why a peer did not answer, and what to do.
func causeOf(err error) string {
	status := new(statusError)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	netError := net.Error(nil)
	switch {
	case errors.As(err, &status) && status.code == http.StatusUnauthorized:
		return "the token is not accepted: set admin.peers_token_file, or use the token of a caller that all instances have"
	case errors.As(err, &status):
		return status.Error()
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netError) && netError.Timeout():
		return fmt.Sprintf("no answer within %s", patience)
	case unknown:
		return "the certificate has an unknown authority: set admin.peers_ca"
	case errors.Is(err, http.ErrSchemeMismatch):
		return "speaks plain HTTP: write http:// in admin.peers"
	}
	text := err.Error()
	return strings.ToValidUTF8(text[:min(len(text), maxCause)], "")
}

// authorizationOf is the field by which peers are asked for a caller: with the caller's own token, so that they show what they show this
// caller. For a caller without one, which a listener without auth lets in, it has the token of admin.peers_token_file.
func authorizationOf(r *http.Request, tokenFile string) (string, error) {
	if own := r.Header.Get("Authorization"); own != "" || tokenFile == "" {
		return own, nil
	}
	token, err := readfile.Line(tokenFile, maxToken, "token")
	if err != nil {
		return "", fmt.Errorf("admin.peers_token_file: %w", err)
	}
	return "Bearer " + token, nil
}
