package wire

import (
	"fmt"
	"strings"
)

// Mismatch adds to err, of a gRPC client without a stream, that the server speaks TLS and the client does not, or the reverse.
// secured says that the client does. setting names what turns TLS on, like lease.tls. Other errors stay as they are, and nil.
//
// gRPC has no error values for these cases, so Mismatch compares texts. A server that refuses the connection for another
// reason also closes it without a word: the advice for that is a question.
func Mismatch(err error, secured bool, setting string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	switch {
	case secured && strings.Contains(text, "first record does not look like a TLS handshake"):
		return fmt.Errorf("%w: the server speaks no TLS: remove %s, or give the address of a listener with TLS", err, setting)
	case !secured && strings.Contains(text, "error reading server preface: ") &&
		(strings.HasSuffix(text, `EOF"`) || strings.HasSuffix(text, `connection reset by peer"`)):
		return fmt.Errorf("%w: does the server speak TLS? If it does, set %s", err, setting)
	case !secured && strings.Contains(text, "looked like an HTTP/1.1 header"):
		return fmt.Errorf("%w: this is a listener of HTTP: give the address of the gRPC listener", err)
	}
	return err
}
