package source_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/config/source"
)

// TestTLSAdvice names the field for each text of crypto/tls and of PostgreSQL, and gives no advice for other errors. The
// tests of cmd/internal/source/open get these texts from real servers.
func TestTLSAdvice(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"tls: failed to verify certificate: x509: certificate signed by unknown authority":               ": set f.ca ",
		"tls: failed to verify certificate: x509: certificate is valid for localhost, not other.example": ": set f.server_name ",
		"x509: cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs":         ": set f.server_name ",
		"x509: certificate is not valid for any names, but wanted to match other.example":                ": set f.server_name ",
		"remote error: tls: certificate required":                                                        ": set f.cert and f.key ",
		"remote error: tls: bad certificate":                                                             ": set f.cert and f.key ",
		"remote error: tls: unknown certificate authority":                                               ": set f.cert and f.key ",
		"FATAL: connection requires a valid client certificate (SQLSTATE 28000)":                         ": set f.cert and f.key ",
		"dial tcp 127.0.0.1:1: connect: connection refused":                                              "",
	} {
		got := source.TLSAdvice(errors.New(text), "f")
		if got != "" && want == "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	if got := source.TLSAdvice(nil, "f"); got != "" {
		t.Errorf("without an error: %q", got)
	}
}
