package certs

import (
	"fmt"
	"log/slog"

	"github.com/headgate/headgate/internal/config"
)

// ForListener opens the files of a listener. It returns nil without files. reloaded is Reloaded of a ServerConfig.
func ForListener(t config.TLS, setting string, log *slog.Logger, reloaded func(error)) (*Server, error) {
	if t.Cert == "" {
		return nil, nil //nolint:nilnil // because no files are configured
	}
	server, err := NewServer(ServerConfig{
		Cert: t.Cert, Key: t.Key, ClientCA: t.ClientCA, Require: t.ClientAuth == config.ClientRequire, ClientName: t.ClientName,
		Log:      log,
		Reloaded: reloaded,
	})
	if err != nil {
		return nil, &config.SettingError{Path: setting, Err: fmt.Errorf("app: %s: %w", setting, err)}
	}
	return server, nil
}
