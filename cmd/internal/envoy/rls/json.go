package rls

import (
	"errors"
	"io"
	"net/http"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/remote"
)

// MaxMessage bounds a request in bytes, over gRPC and as JSON.
const MaxMessage = 4 << 20

// ServeHTTP serves POST /json: the request and the answer are those of gRPC in the JSON form of
// Protocol Buffers. The status is 200 for OK, 429 over a limit, 400 for an invalid request, 413 for
// one above MaxMessage, and 503 when the request could not be decided. A request of a web page has
// the status 403: any page that the operator opens could use up limits on loopback.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "send the request with POST", http.StatusMethodNotAllowed)
		return
	}
	if remote.OfWebPage(r.Header) {
		http.Error(w, "web pages may not send requests here: send the request from a program, without Origin and Sec-Fetch-Site",
			http.StatusForbidden)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxMessage))
	if err != nil {
		refuseBody(w, err)
		return
	}
	memory := min(int64(len(body))*jsonFactor, jsonMemory)
	if s.bodies.Acquire(r.Context(), memory) != nil {
		return // The client has gone.
	}
	defer func() { s.bodies.Release(memory) }()
	answer, over, err := s.decideJSON(r.Context(), body)
	if _, refused := access.ReasonOf(err); refused {
		access.RefuseHTTP(w, err)
		return
	}
	if err != nil {
		http.Error(w, status.Convert(err).Message(), statusOfError(err))
		return
	}
	kept := min(memory, max(0, int64(cap(answer)-len(body))-freeAnswer))
	s.bodies.Release(memory - kept) // A client that does not read its answer must not keep others waiting.
	memory = kept
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if over {
		w.WriteHeader(http.StatusTooManyRequests)
	}
	_, _ = w.Write(answer) // The client has gone if this fails.
}

// refuseBody answers a request whose body could not be read.
func refuseBody(w http.ResponseWriter, err error) {
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		http.Error(w, "the request is too long: send fewer descriptors, or raise server.http.max_body, up to 4MiB",
			http.StatusRequestEntityTooLarge)
		return
	}
	http.Error(w, "the request has ended too early", http.StatusBadRequest)
}

// statusOfError gives the HTTP status of an error of ShouldRateLimit.
func statusOfError(err error) int {
	switch status.Code(err) {
	case codes.InvalidArgument:
		return http.StatusBadRequest
	default:
		return http.StatusServiceUnavailable
	}
}
