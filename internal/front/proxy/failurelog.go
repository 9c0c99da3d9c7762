package proxy

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// logEvery is the minimum time between two lines about a failing upstream. The
	// counters and the access log have every failure.
	logEvery = 10 * time.Second
	// maxLoggedPath and maxLoggedMethod bound the client's text in a line, in bytes.
	maxLoggedPath   = 256
	maxLoggedMethod = 32
)

// failureLog logs failures of one upstream, at most once per logEvery. A failureLog
// is safe for concurrent use.
type failureLog struct {
	quiet atomic.Int64 // end of the pause in logging, in Unix nanoseconds
}

// log logs the cause of a 502 or 504 response. The client does not receive the cause. The
// line has no query, because a query may hold secrets.
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
	to.Warn("could not forward a request", attrs...)
}

// truncated returns the first bytes of text, with an ellipsis if text is longer than most.
func truncated(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}
