package proxy

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/headgate/headgate/cmd/internal/loglimit"
)

// maxLoggedPath and maxLoggedMethod bound the client's text in a line, in bytes.
const (
	maxLoggedPath   = 256
	maxLoggedMethod = 32
)

// failureLog logs some failures of one upstream. The counters and the access log have every failure. A failureLog
// is safe for concurrent use.
type failureLog struct{ lines loglimit.Limiter }

// log logs the cause of a 502 or 504 response. The client does not receive the cause. The
// line has no query, because a query may hold secrets.
func (f *failureLog) log(to *slog.Logger, x *exchange, r *http.Request, err error) {
	if _, log := f.lines.Event(time.Now()); !log {
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
