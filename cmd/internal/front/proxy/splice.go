package proxy

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/headgate/headgate/cmd/internal/http1"
	"github.com/headgate/headgate/cmd/internal/http1/client"
)

// leastSpliced is the size of a body from which the kernel moves it. A smaller one is
// written faster with its header.
const leastSpliced = 16 << 10

// splicer is a ResponseWriter of the fast path.
type splicer interface {
	CanSplice(n int64) bool
	Splice(src net.Conn, n int64, p http1.Progress) (int64, error)
}

// splice lets the kernel move the rest of the answer's body to the client. done is false if
// the body has to be copied.
func (x *exchange) splice(a *client.Answer) (done bool, err error) {
	src, left, plain := a.Source()
	e := entryOf(x.ResponseWriter)
	if !plain || left < leastSpliced || e == nil || x.streams.Counts() || x.scan != nil && x.scan.Reads() {
		return false, nil
	}
	to, ok := e.ResponseWriter.(splicer)
	if !ok || !to.CanSplice(left) {
		return false, nil
	}
	sent, err := to.Splice(src, left, http1.Progress{
		BeforeWrite: func() { x.place.startWait(time.Now()) },
		Wrote:       func(int) { x.place.endWait() },
	})
	a.Consume(sent)
	x.written += int(sent)
	x.sent += sent
	e.line.Bytes += sent
	if _, client := errors.AsType[*http1.WriteError](err); client {
		return false, x.unsent(err)
	}
	if err != nil {
		return false, fmt.Errorf("proxy: reading the answer: %w", err)
	}
	return true, nil
}
