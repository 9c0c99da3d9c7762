package proxy

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// logEvery is the least time between two lines about a failing upstream. The counters
	// and the access log have every failure.
	logEvery = 10 * time.Second
	// maxLoggedPath and maxLoggedMethod bound what a client puts into a line, in bytes.
	maxLoggedPath   = 256
	maxLoggedMethod = 32
)

// failureLog logs failures of one upstream. It is safe for concurrent use.
type failureLog struct {
	quiet atomic.Int64 // until when failures are not logged, in nanoseconds of Unix time
}

// log logs why the answer to r is 502 or 504; the client is not told. The query is left
// out: it may hold secrets.
func (f *failureLog) log(to *slog.Logger, x *exchange, r *http.Request, err error) {
	now, until := time.Now(), f.quiet.Load()
	if now.UnixNano() < until || !f.quiet.CompareAndSwap(until, now.Add(logEvery).UnixNano()) {
		return
	}
	attrs := make([]any, 0, 10)
	attrs = append(attrs, "upstream", x.settings.upstream.Host)
	if id := entryOf(x).requestIDValue(); id != "" {
		attrs = append(attrs, "request_id", id)
	}
	attrs = append(attrs, "method", truncated(r.Method, maxLoggedMethod),
		"path", truncated(r.URL.EscapedPath(), maxLoggedPath), "error", err)
	to.Warn("a request could not be forwarded", attrs...)
}

// truncated returns the first bytes of text, with an ellipsis where text is longer.
func truncated(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}
