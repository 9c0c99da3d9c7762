// Package logs keeps a log in memory for tests that read it while other goroutines write it.
package logs

import (
	"bytes"
	"log/slog"
	"sync"
)

// Text is the text of a log. Its zero value is empty. It is safe for concurrent use.
type Text struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (t *Text) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(b)
}

// String returns what was logged, or what was logged since Take.
func (t *Text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// Take returns what String returns, and empties the text.
func (t *Text) Take() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.text.Reset()
	return t.text.String()
}

// Logger writes lines like level=INFO msg=... to the text.
func (t *Text) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(t, nil)) }
