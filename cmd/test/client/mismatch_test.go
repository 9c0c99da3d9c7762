package client_test

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/headgate/headgate/client"
	"github.com/headgate/headgate/cmd/internal/testkit/decisions"
	"github.com/headgate/headgate/cmd/internal/testkit/guards"
	"github.com/headgate/headgate/internal/testkit/logs"
)

// TestMismatch: the log says what to set when the server speaks TLS and the client does not, and the reverse.
func TestMismatch(t *testing.T) {
	secured := httptest.NewUnstartedServer(http.NotFoundHandler())
	secured.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	secured.StartTLS()
	defer secured.Close()
	for _, row := range []struct {
		at   string
		tls  *tls.Config
		want string
	}{
		{secured.Listener.Addr().String(), nil, "does the server speak TLS? If it does, set Config.TLS"},
		{decisions.Start(t, guards.New(t, rules), "").At, &tls.Config{MinVersion: tls.VersionTLS12}, "speaks no TLS: remove Config.TLS"},
	} {
		var logged logs.Text
		k := connect(t, client.Config{Servers: []string{row.at}, TLS: row.tls, Log: logged.Logger()})
		until(t, row.want, func() bool { return strings.Contains(logged.String(), row.want) })
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
}
