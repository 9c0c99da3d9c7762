package rls_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/envoy/rls"
)

// TestWebPagesAreRefused: a page in a browser cannot use up a limit, whatever its origin. Programs
// decide as before, with any content type.
func TestWebPagesAreRefused(t *testing.T) {
	s := serve(t, rls.Options{}, domain(node("k", "", counted(2, time.Minute))))
	const body = `{"domain": "d", "descriptors": [{"entries": [{"key": "k", "value": "v"}]}]}`
	for _, row := range []struct {
		story string
		lines []string
		want  int
	}{
		{"a page of another site", []string{"Origin", "http://a.example", "Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{"a page of the same site", []string{"Origin", "http://localhost:3000", "Sec-Fetch-Site", "same-site"}, http.StatusForbidden},
		{"a page after DNS rebinding", []string{"Origin", "http://example.com", "Sec-Fetch-Site", "same-origin"}, http.StatusForbidden},
		{"an old browser", []string{"Origin", "http://example.com"}, http.StatusForbidden},
		{"a sandboxed page", []string{"Origin", "null", "Content-Type", "text/plain"}, http.StatusForbidden},
		{"a page without an origin", []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{"an empty origin", []string{"Origin", ""}, http.StatusForbidden},
		{"curl", []string{"Content-Type", "application/x-www-form-urlencoded"}, http.StatusOK},
		{"a program", []string{"Content-Type", "application/json"}, http.StatusOK},
		{"the third counted request", nil, http.StatusTooManyRequests},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://example.com/json", strings.NewReader(body))
		for i := 0; i < len(row.lines); i += 2 {
			r.Header.Set(row.lines[i], row.lines[i+1])
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != row.want {
			t.Errorf("%s: got status %d, want %d: %s", row.story, w.Code, row.want, w.Body)
		}
	}
}

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

// TestUnreadAnswer: an answer that waits for its client takes no memory from other requests.
func TestUnreadAnswer(t *testing.T) {
	s := serve(t, rls.Options{}, domain(node("k", "", counted(2, time.Minute))))
	value := strings.Repeat("v", 3000)
	one := `{"entries": [{"key": "k", "value": "` + value + `"}]}`
	// The body gets all memory of bodies while it is decided.
	body := `{"domain": "d", "descriptors": [` + strings.Repeat(one+",", 99) + one + "]}"
	post := func(w http.ResponseWriter) {
		s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://example.com/json", strings.NewReader(body)))
	}
	unread := &unreadWriter{ResponseRecorder: httptest.NewRecorder(), writing: make(chan struct{}), read: make(chan struct{})}
	var serving sync.WaitGroup
	serving.Go(func() { post(unread) })
	<-unread.writing
	others := make(chan int, 1)
	serving.Go(func() {
		w := httptest.NewRecorder()
		post(w)
		others <- w.Code
	})
	select {
	case code := <-others:
		if code != http.StatusTooManyRequests {
			t.Errorf("another client gets status %d, want 429", code)
		}
	case <-time.After(10 * time.Second):
		t.Error("another client waits for one that does not read its answer")
	}
	close(unread.read)
	serving.Wait()
}
