package proxy

import (
	"errors"
	"log/slog"
	"net/url"
	"testing"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/report"
	"github.com/headgate/headgate/rule"
)

// TestNewRefusesKeysItCannotGive checks that a proxy refuses rules that count by what no request to it has.
func TestNewRefusesKeysItCannotGive(t *testing.T) {
	u, err := url.Parse("http://127.0.0.1:9000")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		key          string
		certificates bool
		refused      bool
	}{
		{"descriptor:user", true, true}, {"mtls_subject", false, true}, {"mtls_subject", true, false}, {"cookie:a", false, false}, {"header:X-A", false, false},
	} {
		part, err := rule.ParsePart(row.key)
		if err != nil {
			t.Fatal(err)
		}
		r := product(t)
		r.Key = []rule.Part{part}
		g, err := guard.New(guard.Config{Rules: []guard.Rule{r}, Store: allowed()})
		if err != nil {
			t.Fatal(err)
		}
		_, err = New(Config{
			Guard: g, Upstream: u, Transport: NewTransport(0), Traffic: new(report.Traffic), Log: slog.New(slog.DiscardHandler),
			Certificates: row.certificates,
		})
		if _, found := errors.AsType[*guard.UnsuppliedError](err); found != row.refused || !found && err != nil {
			t.Errorf("%s, certificates %t: the error is %v", row.key, row.certificates, err)
		}
	}
}
