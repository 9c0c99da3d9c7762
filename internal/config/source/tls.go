package source

import (
	"fmt"
	"strings"
)

// TLSAdvice says what to do about a failed TLS handshake with a source; "" for other errors. field is the place of the
// TLS settings in the configuration, such as source.etcd.tls. TLSAdvice reads the text of the error, because gRPC
// passes on only the text.
func TLSAdvice(err error, field string) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	has := func(part string) bool { return strings.Contains(text, part) }
	switch {
	case has("x509: certificate signed by unknown authority"):
		return fmt.Sprintf(": set %s.ca to a file with the authority that signed the server's certificate", field)
	case has("x509: certificate is valid for"), has("x509: cannot validate certificate for"),
		has("x509: certificate is not valid for any names"):
		return fmt.Sprintf(": set %s.server_name to a name in the server's certificate", field)
	case has("tls: certificate required"), has("tls: bad certificate"), has("tls: unknown certificate authority"),
		has("valid client certificate"):
		return fmt.Sprintf(": set %s.cert and %s.key to a client certificate that the server accepts", field, field)
	}
	return ""
}
