package dogma_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// server implements the published protocol of Central Dogma for one repository: reads,
// watches and error answers.
type server struct {
	project, repository string
	token               string // empty: every token is accepted

	mu        sync.Mutex
	revisions []map[string]json.RawMessage // files by revision minus 1; revision 1 is empty
	news      chan struct{}                // closed at the next commit
	received  []request
	// instead, if set, handles a request when it returns true.
	instead func(w http.ResponseWriter, r *http.Request) bool
}

// request is a received request.
type request struct {
	at                    time.Time
	path, query           string
	known, prefer, bearer string
}

func newServer() *server {
	return &server{
		project: "campaign", repository: "limits",
		revisions: []map[string]json.RawMessage{{}}, news: make(chan struct{}),
	}
}

const (
	document   = "/providers/mail.json"
	exceptions = "com.linecorp.centraldogma.common."
)

// commit creates the next revision, with the file's new content. Empty content removes the
// file.
func (s *server) commit(path, content string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	files := maps.Clone(s.revisions[len(s.revisions)-1])
	delete(files, path)
	if content != "" {
		files[path] = json.RawMessage(content)
	}
	s.revisions = append(s.revisions, files)
	close(s.news)
	s.news = make(chan struct{})
	return len(s.revisions)
}

// restore removes all revisions after the given one.
func (s *server) restore(revision int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revisions = s.revisions[:revision]
}

func (s *server) answers(instead func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.instead = instead
}

func (s *server) accepts(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}

func (s *server) requests() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]request(nil), s.received...)
}

// head returns the newest revision, and a channel that the next commit closes.
func (s *server) head() (int, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.revisions), s.news
}

func (s *server) file(revision int, path string) (json.RawMessage, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	content, ok := s.revisions[revision-1][path]
	return content, ok
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	s.received = append(s.received, request{
		time.Now(), r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get("If-None-Match"), r.Header.Get("Prefer"), bearer,
	})
	instead, token := s.instead, s.token
	s.mu.Unlock()
	if instead != nil && instead(w, r) {
		return
	}
	if bearer == "" || token != "" && bearer != token {
		refuse(w, http.StatusUnauthorized, "AuthorizationException", "You must be logged in.")
		return
	}
	// Central Dogma's routes also match the decoded path.
	path, found := strings.CutPrefix(r.URL.Path, "/api/v1/projects/"+s.project+"/repos/"+s.repository+"/contents")
	if !found || !strings.HasPrefix(path, "/") {
		refuse(w, http.StatusNotFound, "ProjectNotFoundException", "Project '"+r.URL.Path+"' does not exist.")
		return
	}
	if r.Method != http.MethodGet {
		refuse(w, http.StatusMethodNotAllowed, "", "")
		return
	}
	q := query{server: s, path: path, address: r.URL.Path, jsonPaths: r.URL.Query()["jsonpath"]}
	if known := r.Header.Get("If-None-Match"); known != "" {
		q.watch(w, r, known)
		return
	}
	head, _ := s.head()
	q.read(w, head)
}

// query is a read or a watch of a file, or of the values that JSON paths select in it.
type query struct {
	server        *server
	path, address string
	jsonPaths     []string
}

// value returns the value in a revision, or nil if the revision does not have the file.
func (q query) value(revision int) (value any, err error) {
	content, ok := q.server.file(revision, q.path)
	if !ok {
		return nil, err
	}
	if err := json.Unmarshal(content, &value); err != nil {
		return nil, err
	}
	for _, path := range q.jsonPaths {
		for i, name := range strings.Split(path, ".") {
			if i == 0 && name == "$" {
				continue
			}
			fields, _ := value.(map[string]any)
			if value, ok = fields[name]; !ok {
				return nil, fmt.Errorf("JSON path evaluation failed: %s", path)
			}
		}
	}
	return value, nil
}

func (q query) entry(revision int, value any) map[string]any {
	return map[string]any{
		"revision": revision, "path": q.path, "type": "JSON", "content": value, "url": q.address,
	}
}

func (q query) read(w http.ResponseWriter, revision int) {
	value, err := q.value(revision)
	switch {
	case err != nil:
		refuse(w, http.StatusBadRequest, "QueryExecutionException", err.Error())
	case value == nil:
		refuse(w, http.StatusNotFound, "EntryNotFoundException", "Entry '"+q.path+"' does not exist.")
	default:
		reply(w, http.StatusOK, q.entry(revision, value))
	}
}

func (q query) watch(w http.ResponseWriter, r *http.Request, knownText string) {
	known, err := revisionOf(knownText)
	if err != nil {
		refuse(w, http.StatusBadRequest, "", err.Error())
		return
	}
	wait, notify, err := preferOf(r.Header.Get("Prefer"))
	if err != nil {
		refuse(w, http.StatusBadRequest, "", err.Error())
		return
	}
	head, _ := q.server.head()
	if known < 0 {
		known = max(head+known+1, 1)
	}
	if known > head {
		refuse(w, http.StatusNotFound, "RevisionNotFoundException", fmt.Sprintf("Revision %d does not exist.", known))
		return
	}
	// Central Dogma answers up to a fifth earlier, so that clients do not return together.
	timer := time.NewTimer(time.Duration(float64(wait) * (1 - 0.2*rand.Float64())))
	defer timer.Stop()
	old, err := q.value(known)
	for err == nil {
		head, news := q.server.head()
		var value any
		if value, err = q.value(head); err != nil {
			break
		}
		if value == nil && notify {
			refuse(w, http.StatusNotFound, "EntryNotFoundException", "Entry '"+q.path+"' does not exist.")
			return
		}
		if value != nil && !reflect.DeepEqual(old, value) {
			reply(w, http.StatusOK, map[string]any{"revision": head, "entry": q.entry(head, value)})
			return
		}
		select {
		case <-news:
		case <-timer.C:
			w.WriteHeader(http.StatusNotModified)
			return
		case <-r.Context().Done():
			return
		}
	}
	refuse(w, http.StatusBadRequest, "QueryExecutionException", err.Error())
}

// revisionOf parses <revision>, "<revision>" or W/"<revision>".
func revisionOf(text string) (int, error) {
	if inner, ok := strings.CutSuffix(strings.TrimPrefix(text, "W/"), `"`); ok {
		text = strings.TrimPrefix(inner, `"`)
	}
	revision, err := strconv.ParseInt(text, 10, 32)
	if err != nil || revision == 0 {
		return 0, fmt.Errorf("revision: %s (expected: a non-zero integer)", text)
	}
	return int(revision), nil
}

// preferOf parses wait=seconds and notify-entry-not-found. As in Central Dogma, seconds must
// be an integer above 0.
func preferOf(text string) (wait time.Duration, notify bool, err error) {
	if text == "" {
		return 2 * time.Minute, false, nil
	}
	tokens := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		tokens[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value)
	}
	seconds, err := strconv.ParseInt(tokens["wait"], 10, 64)
	if err != nil {
		return 0, false, errors.New("invalid prefer header: " + text + " (expected: wait=seconds)")
	}
	if seconds <= 0 {
		return 0, false, errors.New("invalid prefer header: " + text + " (expected: seconds > 0)")
	}
	return min(time.Duration(seconds)*time.Second, 24*time.Hour), strings.EqualFold(tokens["notify-entry-not-found"], "true"), nil
}

func refuse(w http.ResponseWriter, status int, exception, message string) {
	if exception == "" {
		exception = "java.lang.IllegalArgumentException"
	} else {
		exception = exceptions + exception
	}
	reply(w, status, map[string]any{"exception": exception, "message": message})
}

func reply(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(err.Error())
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(data) // The client may have disconnected.
}

// machines are servers without a network. Their connections are pipes in memory, because
// synctest does not recognize a goroutine that waits for a socket as blocked.
type machines struct {
	mu    sync.Mutex
	hosts map[string]chan net.Conn
}

func newMachines() *machines { return &machines{hosts: map[string]chan net.Conn{}} }

// serve serves a host and port until the end of the test.
func (m *machines) serve(t *testing.T, host string, handler http.Handler) (stop func()) {
	t.Helper()
	listener := &pipes{machines: m, host: host, conns: make(chan net.Conn), closed: make(chan struct{})}
	m.mu.Lock()
	m.hosts[host] = listener.conns
	m.mu.Unlock()
	running := &http.Server{Handler: handler}
	ended := make(chan struct{})
	go func() {
		_ = running.Serve(listener)
		close(ended)
	}()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			_ = running.Close()
			<-ended
		})
	}
	t.Cleanup(stop)
	return stop
}

// client returns a client that connects to the machines.
func (m *machines) client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: m.dial, DisableKeepAlives: true}}
}

func (m *machines) dial(ctx context.Context, _, host string) (net.Conn, error) {
	m.mu.Lock()
	conns := m.hosts[host]
	m.mu.Unlock()
	if conns == nil {
		return nil, errors.New("connection refused")
	}
	here, there := net.Pipe()
	select {
	case conns <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pipes is the listener of a machine.
type pipes struct {
	machines *machines
	host     string
	conns    chan net.Conn
	once     sync.Once
	closed   chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() {
		p.machines.mu.Lock()
		if p.machines.hosts[p.host] == p.conns {
			delete(p.machines.hosts, p.host)
		}
		p.machines.mu.Unlock()
		close(p.closed)
	})
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: p.host, Net: "pipe"} }
