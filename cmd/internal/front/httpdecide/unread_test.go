package httpdecide

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// unreadWriter writes to a client that reads nothing until read is closed.
type unreadWriter struct {
	*httptest.ResponseRecorder

	writing, read chan struct{}
	once          sync.Once
}

func (w *unreadWriter) Write(b []byte) (int, error) {
	w.once.Do(func() { close(w.writing) })
	<-w.read
	return w.ResponseRecorder.Write(b)
}

// TestUnreadAnswer: an answer that waits for its client takes no memory from other messages, and stays as it is when
// they use its message again.
func TestUnreadAnswer(t *testing.T) {
	s := serviceOf(t, postRules)
	const one = `{"path":"/a","headers":{"x-client-id":"a"}}`
	list := "[" + strings.Repeat(one+",", 999) + one + "]"
	w := &unreadWriter{ResponseRecorder: httptest.NewRecorder(), writing: make(chan struct{}), read: make(chan struct{})}
	var serving sync.WaitGroup
	serving.Go(func() {
		s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, Pattern, strings.NewReader(list)))
	})
	<-w.writing
	if s.bodies.TryAcquire(bodyMemory) {
		s.bodies.Release(bodyMemory)
	} else {
		t.Error("an answer that waits for its client takes memory from other messages")
	}
	for range 10 {
		if status, got := s.post1(t, `[{}]`); status != http.StatusOK || got != `[{"verdict":"allow","reason":"no_rule"}]` {
			t.Errorf("another client gets %d %s", status, got)
		}
	}
	close(w.read)
	serving.Wait()
	got := w.Body.String()
	if allowed, denied := strings.Count(got, `"allow"`), strings.Count(got, `"deny"`); allowed != 2 || denied != 998 {
		t.Errorf("%d requests are allowed and %d denied, want 2 and 998: %.300s", allowed, denied, got)
	}
	if !s.bodies.TryAcquire(bodyMemory) {
		t.Error("an answer that was read takes memory from other messages")
	}
}
