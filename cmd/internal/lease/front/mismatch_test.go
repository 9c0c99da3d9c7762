package front

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/headgate/headgate/internal/testkit/logs"
)

// TestMismatch: the log names lease.tls when the parent speaks TLS and this server does not, and the reverse.
func TestMismatch(t *testing.T) {
	secured := httptest.NewUnstartedServer(http.NotFoundHandler())
	secured.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	secured.StartTLS()
	defer secured.Close()
	open := httptest.NewServer(http.NotFoundHandler())
	defer open.Close()
	for _, row := range []struct {
		at   string
		own  credentials.TransportCredentials
		want string
	}{
		{secured.Listener.Addr().String(), insecure.NewCredentials(), "does the server speak TLS? If it does, set lease.tls"},
		{open.Listener.Addr().String(), credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12}), "speaks no TLS: remove lease.tls"},
	} {
		var logged logs.Text
		u := NewUplink(UplinkOptions{Servers: []string{row.at}, Credentials: row.own, Holder: name("leaf"), Log: logged.Logger()})
		config := root()
		config.Resources, config.Child = nil, true
		u.Start(serviceOf(t, Options{State: config, Up: u.Up}))
		for began := time.Now(); !strings.Contains(logged.String(), row.want); <-time.After(time.Millisecond) {
			if time.Since(began) > 30*time.Second {
				t.Errorf("the log has %q, want %q", logged.String(), row.want)
				break
			}
		}
		u.Close()
	}
}
