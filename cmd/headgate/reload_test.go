package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
)

// instance serves an admin listener that reports s as the status of the last reload.
func instance(t *testing.T, s admin.ReloadStatus) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/reload", func(w http.ResponseWriter, _ *http.Request) {
		switch {
		case len(s.Failures) > 0:
			w.WriteHeader(http.StatusConflict)
		case len(s.Waiting) > 0:
			w.WriteHeader(http.StatusAccepted)
		}
		_ = json.NewEncoder(w).Encode(s)
	})
	mux.HandleFunc("GET /api/v1/status", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(admin.Status{Reload: s})
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

func TestReload(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	good := instance(t, admin.ReloadStatus{Loaded: at, Succeeded: 1})
	faulty := instance(t, admin.ReloadStatus{Loaded: at, Failed: 2, Failures: []admin.ReloadFailure{
		{Part: "configuration", At: at, Error: "a.yaml:1:2: x: is wrong (and 1 more)", Faults: []admin.ReloadFault{
			{Text: "a.yaml:1:2: x: is wrong: mend it"}, {Text: "a.yaml:3:4: y: is missing: add it"},
		}},
		{Part: "access log", At: at, Error: "open /var/log/x: permission denied"},
	}})
	logs := instance(t, admin.ReloadStatus{Loaded: at, Failures: []admin.ReloadFailure{{Part: "access log", At: at, Error: "open /var/log/x: permission denied"}}})
	waiting := instance(t, admin.ReloadStatus{Loaded: at, Succeeded: 1, Waiting: []string{"log.format", "max_memory"}})
	const notReloaded = "configuration not reloaded, the previous version stays in effect:\na.yaml:1:2: x: is wrong: mend it\n" +
		"a.yaml:3:4: y: is missing: add it\naccess log not reloaded, the previous version stays in effect:\nopen /var/log/x: permission denied\n"
	for _, row := range []struct {
		args           string
		status         int
		stdout, stderr string
	}{
		{"reload --admin " + good.URL, exitOK, "reloaded at ", ""},
		{"reload --admin " + good.Listener.Addr().String(), exitOK, "reloaded at ", ""},
		{"reload --json --admin " + good.URL, exitOK, `"succeeded":1`, ""},
		{"reload --admin " + faulty.URL + "/", exitUsage, "", notReloaded},
		{"reload --json --admin " + faulty.URL, exitUsage, `"part":"access log"`, notReloaded},
		{"reload --admin " + logs.URL, exitFailed, "", "access log not reloaded"},
		{
			"reload --admin " + waiting.URL, exitFailed, "",
			", without 2 changed settings: restart the instance to put in force log.format, max_memory\n",
		},
		{"reload --json --admin " + waiting.URL, exitFailed, `"waiting_for_restart":["log.format","max_memory"]`, "log.format, max_memory\n"},
		{"status --admin " + waiting.URL, exitOK, "\nlog.format NOT IN FORCE: restart the instance\nmax_memory NOT IN FORCE: ", ""},
		{"status --admin " + faulty.URL, exitOK, ": a.yaml:1:2: x: is wrong (and 1 more)\n", ""},
		{"status --admin " + faulty.URL, exitOK, "access log NOT RELOADED at ", ""},
		{"status --admin " + good.URL, exitOK, "; 1 reload, 0 failed\n", ""},
		{"reload --admin " + strings.Replace(good.URL, "http:", "https:", 1), exitFailed, "", "speaks plain HTTP: write http://"},
		{"reload --admin nowhere", exitFailed, "", `"nowhere" is not an address: write host:port with --admin`},
		{"reload --admin http://127.0.0.1:1", exitFailed, "", "nothing answers on 127.0.0.1:1"},
	} {
		status, stdout, stderr := call(t, append([]string{"ctl"}, strings.Fields(row.args)...)...)
		if status != row.status || !strings.Contains(stdout, row.stdout) || !strings.Contains(stderr, row.stderr) || row.stderr == "" && stderr != "" {
			t.Errorf("%s: status %d, printed %q and %q, want %d, %q and %q", row.args, status, stdout, stderr, row.status, row.stdout, row.stderr)
		}
	}
}
