package httplimit

import (
	"errors"
	"net/http"
)

// ErrSpent is the error of a write to an answer that on_spent ended, because its key has no units left. It is also the cause with which
// the context of the request ends.
var ErrSpent = errors.New("httplimit: the answer was stopped: its key has no units left")

// stop sends the last bytes of an answer and the event that ends it, and ends the context of the handler. Later bytes are dropped.
func (a *trackedWriter) stop(last []byte) (int, error) {
	if a.spent {
		return 0, ErrSpent
	}
	a.spent = true
	defer a.cancel(ErrSpent)
	for _, b := range [...][]byte{last, a.scan.AppendEnd(nil)} {
		if len(b) == 0 {
			continue
		}
		n, err := a.ResponseWriter.Write(b)
		a.sent += int64(n)
		if err != nil {
			return 0, err //nolint:wrapcheck // As of Write.
		}
	}
	_ = http.NewResponseController(a.ResponseWriter).Flush()
	return len(last), ErrSpent
}
