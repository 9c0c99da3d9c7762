package proxy

import (
	"io"
	"net/http"

	"github.com/headgate/headgate/guard"
)

// stop sends the last bytes of an answer, and the event that ends it. Later bytes of the service are dropped.
func (x *exchange) stop(last []byte) error {
	if x.spent {
		return nil
	}
	x.spent, x.end = true, guard.Stopped
	if len(last) > 0 {
		if _, err := x.write(last); err != nil {
			return err
		}
	}
	if _, err := x.write(x.scan.AppendEnd(nil)); err != nil {
		return err
	}
	return x.FlushError()
}

// stopBody lets the body of an answer that net/http copies end when the answer is stopped.
func stopBody(resp *http.Response) {
	if resp.Request == nil || resp.StatusCode == http.StatusSwitchingProtocols {
		return
	}
	if x, ok := resp.Request.Context().Value(exchangeKey{}).(*exchange); ok && x.scan != nil && x.scan.Stops() {
		resp.Body = &stoppedBody{resp.Body, x}
	}
}

// stoppedBody is the body of an answer that may be stopped.
type stoppedBody struct {
	io.ReadCloser

	x *exchange
}

// Read implements io.Reader.
func (b *stoppedBody) Read(p []byte) (int, error) {
	if b.x.spent {
		return 0, io.EOF
	}
	return b.ReadCloser.Read(p) //nolint:wrapcheck // The reverse proxy compares the error.
}
