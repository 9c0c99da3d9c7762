package httpdecide

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/loglimit"
	"github.com/headgate/headgate/cmd/internal/remote"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// Pattern is the pattern of http.ServeMux that the Service handles.
const Pattern = "/v1/decide"

// MaxBody bounds a message in JSON, in bytes.
const MaxBody = 4 << 20

// The memory of messages, in bytes. TestMemoryOfMessages measures it.
const (
	// bodyFactor is the memory of a body for each of its bytes: a long name shows in an error. requestBytes is that of a request,
	// its entries and its answer. The shortest request has shortest bytes.
	bodyFactor, requestBytes, shortest = 15, 12 << 10, 3
	// bodyMemory bounds the memory of all messages at one time. The longest message gets all of it.
	bodyMemory = 64 << 20
)

// Service answers requests of HTTP clients. It is safe for concurrent use.
type Service struct {
	guard     *guard.Guard
	log       *slog.Logger
	bodies    *semaphore.Weighted
	messages  sync.Pool // of *message
	answers   sync.Pool // of *encoded
	exchanges sync.Pool // of *exchange
	stats     struct{ posts, gets, requests, faults atomic.Uint64 }
	untrusted loglimit.Limiter // subrequests of untrusted peers
	// front describes subrequests. unsupplied are those of rules that count by other parts.
	front      *guard.Front
	unsupplied loglimit.Limiter
	instance   atomic.Value // string
}

// Stats are the counters of a Service.
type Stats struct {
	// Posts and Gets were answered, with so many Requests, of which Faults could not be decided.
	Posts, Gets, Requests, Faults uint64
	// Untrusted counts subrequests of peers outside trusted_proxies.
	Untrusted uint64
}

// New makes a Service that decides by g. log gets faults of our own, and peers outside trusted_proxies.
func New(g *guard.Guard, log *slog.Logger) *Service {
	return &Service{guard: g, log: log, bodies: semaphore.NewWeighted(bodyMemory), front: &guard.Front{
		Name: "GET /v1/decide", Supplies: rule.SupplyHeaders | rule.SupplyCookies | rule.SupplyQueries,
		Fix: "count by another part, or ask with POST /v1/decide, which takes descriptors and the subject",
	}}
}

// Name sets the name of the instance in the field Headgate-Decision of later subrequests; "" sends no field.
func (s *Service) Name(instance string) { s.instance.Store(instance) }

// Stats reads the counters.
func (s *Service) Stats() Stats {
	c := &s.stats
	return Stats{
		Posts: c.posts.Load(), Gets: c.gets.Load(), Requests: c.requests.Load(), Faults: c.faults.Load(), Untrusted: s.untrusted.Events(),
	}
}

// ServeHTTP implements http.Handler.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		s.post(w, r)
	case http.MethodGet, http.MethodHead: // Gateways may ask with the method of their client's request.
		s.get(w, r)
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		refuse(w, http.StatusMethodNotAllowed, "send requests to decide with POST, or a subrequest of a gateway with GET")
	}
}

// post decides the requests of a message in JSON.
func (s *Service) post(w http.ResponseWriter, r *http.Request) {
	s.stats.posts.Add(1)
	if remote.OfWebPage(r.Header) {
		refuse(w, http.StatusForbidden, "web pages may not send requests here: send the request from a program, without Origin and "+
			"Sec-Fetch-Site")
		return
	}
	call := access.CallOf(r.Context())
	m, ok := s.messages.Get().(*message)
	if !ok {
		m = new(message)
	}
	if !s.read(w, r, m) {
		return
	}
	memory := min(int64(len(m.body))*bodyFactor+min(int64(len(m.body))/shortest, remote.MaxRequests)*requestBytes, bodyMemory)
	if s.bodies.Acquire(r.Context(), memory) != nil {
		return // The client has gone.
	}
	defer func() { s.bodies.Release(memory) }()
	if fault := m.decode(s.guard, call.Client()); fault != nil {
		s.stats.faults.Add(1)
		refuse(w, http.StatusBadRequest, fault.Error())
		return
	}
	if err := m.batch.Decide(r.Context()); err != nil {
		call.Refused(err)
		access.RefuseHTTP(w, err)
		return
	}
	length := int64(len(m.body))
	status, out := s.encode(m, call)
	kept := min(memory, max(0, int64(cap(out.b))-length-freeAnswer))
	s.bodies.Release(memory - kept) // A client that does not read its answer must not keep others waiting.
	memory = kept
	s.write(w, status, out)
}

// encoded is the answer to a message, with memory that later ones use again.
type encoded struct {
	b        []byte
	decision string // the name of a lone refusal
}

// encode encodes the answers of a message, and ends the message. A client may leave its answer unread, so the
// message keeps nothing for it.
func (s *Service) encode(m *message, call *access.Call) (status int, out *encoded) {
	out, ok := s.answers.Get().(*encoded)
	if !ok {
		out = new(encoded)
	}
	m.encoded = out.b
	status = m.encode(s, call)
	out.b, out.decision, m.encoded = m.encoded, "", nil
	if m.alone {
		out.decision = string(m.decision)
	}
	if len(m.body) <= maxKeptBytes {
		m.batch.Release()
		s.messages.Put(m)
	}
	return status, out
}

// write writes an answer.
func (s *Service) write(w http.ResponseWriter, status int, out *encoded) {
	h, values := w.Header(), [...]string{"application/json", "nosniff", "no-store"}
	h["Content-Type"], h["X-Content-Type-Options"], h["Cache-Control"] = values[0:1:1], values[1:2:2], values[2:3:3]
	if out.decision != "" {
		h[guard.DecisionField] = []string{out.decision}
	}
	w.WriteHeader(status)
	_, _ = w.Write(out.b) // The client has gone if this fails.
	if cap(out.b) <= maxKeptBytes {
		s.answers.Put(out)
	}
}

const (
	// maxKeptBytes bounds the bodies and answers whose memory is kept for others.
	maxKeptBytes = 64 << 10
	// freeAnswer is what an answer may have, beside the length of its body, without being counted: both are in the
	// memory of a connection that headgate check prints.
	freeAnswer = 256 << 10
)

// read reads the body of a request into m. If it cannot, it answers.
func (s *Service) read(w http.ResponseWriter, r *http.Request, m *message) bool {
	var err error
	m.body, err = readAll(m.body[:0], http.MaxBytesReader(w, r.Body, MaxBody))
	if err == nil {
		return true
	}
	s.stats.faults.Add(1)
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		refuse(w, http.StatusRequestEntityTooLarge,
			"the message is too long: send fewer requests, or raise server.http.max_body, up to 4MiB")
		return false
	}
	refuse(w, http.StatusBadRequest, "the message has ended too early")
	return false
}

// readAll appends everything to b.
func readAll(b []byte, from io.Reader) ([]byte, error) {
	const least = 512
	for {
		if cap(b)-len(b) < least/2 {
			grown := make([]byte, len(b), max(least, 2*cap(b)))
			copy(grown, b)
			b = grown
		}
		n, err := from.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) {
			return b, nil
		}
		if err != nil {
			return b, err
		}
	}
}

// refuse answers with a status and a text.
func refuse(w http.ResponseWriter, status int, text string) { http.Error(w, text, status) }
