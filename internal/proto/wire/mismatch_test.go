package wire_test

import (
	"errors"
	"testing"

	"github.com/headgate/headgate/internal/proto/wire"
)

// TestMismatch: the texts of gRPC get an advice that fits, and other errors stay as they are. The clients compare with real servers.
func TestMismatch(t *testing.T) {
	const preface = `rpc error: code = Unavailable desc = connection error: desc = "error reading server preface: `
	const record = `handshake failed: tls: first record does not look like a TLS handshake"`
	for _, row := range []struct {
		text    string
		secured bool
		want    string
	}{
		{preface + `EOF"`, false, "does the server speak TLS? If it does, set lease.tls"},
		{preface + `read tcp: connection reset by peer"`, false, "does the server speak TLS? If it does, set lease.tls"},
		{preface + `EOF"`, true, ""},
		{preface + `i/o timeout"`, false, ""},
		{
			preface + `frame too large, note that the frame header looked like an HTTP/1.1 header"`, false,
			"this is a listener of HTTP: give the address of the gRPC listener",
		},
		{record, true, "the server speaks no TLS: remove lease.tls, or give the address of a listener with TLS"},
		{record, false, ""},
	} {
		err := errors.New(row.text)
		got := wire.Mismatch(err, row.secured, "lease.tls")
		if want := row.text + map[bool]string{true: "", false: ": " + row.want}[row.want == ""]; got.Error() != want || !errors.Is(got, err) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if err := wire.Mismatch(nil, true, "lease.tls"); err != nil {
		t.Error(err)
	}
}
