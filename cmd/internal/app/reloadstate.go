package app

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/internal/config"
)

// Parts of a reload that can fail separately: the values of ReloadFailure.Part.
const (
	partConfiguration = "configuration"
	partCertificates  = "certificates"
	partUpstreamCerts = "upstream certificates"
	partGRPCCerts     = "gRPC certificates"
	partHTTPCerts     = "HTTP certificates"
	partRESPCerts     = "RESP certificates"
	partAccessLog     = "access log"
)

// maxReloadError bounds the stored text of an error, in bytes. config.Faults has its own bound.
const maxReloadError = 4096

func newReloadFailure(part string, err error, at time.Time) admin.ReloadFailure {
	f := admin.ReloadFailure{Part: part, At: at.UTC(), Error: err.Error()}
	if faults, found := errors.AsType[config.Faults](err); found {
		for i := range faults {
			f.Faults = append(f.Faults, reloadFault(&faults[i]))
		}
		f.Error = faults[0].Headline()
		if more := len(faults) - 1; more > 0 {
			f.Error += fmt.Sprintf(" (and %d more)", more)
		}
	}
	if len(f.Error) > maxReloadError {
		f.Error = strings.ToValidUTF8(f.Error[:maxReloadError], "") + "..."
	}
	return f
}

// reloadFault gives a fault as a document.
func reloadFault(f *config.Fault) admin.ReloadFault {
	return admin.ReloadFault{
		File: f.File, Line: f.Line, Column: f.Column, Field: f.Path, Problem: f.Problem, Fix: f.Fix, Text: f.String(),
	}
}

// reloadState has the parts whose last reload failed, with at most one failure per part.
type reloadState struct {
	mu       sync.Mutex
	failures []admin.ReloadFailure
}

// ended records the result of a part's reload, and reports whether no part has a failure.
func (s *reloadState) ended(part string, err error) (allGood bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = slices.DeleteFunc(s.failures, func(f admin.ReloadFailure) bool { return f.Part == part })
	if err != nil {
		s.failures = append(s.failures, newReloadFailure(part, err, time.Now()))
	}
	return len(s.failures) == 0
}

func (s *reloadState) list() []admin.ReloadFailure {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.failures)
}

// reloadEnded records the result of a part's reload for status and metrics.
func (i *Instance) reloadEnded(part string, err error) {
	if err != nil {
		i.rules.report.Reloads.Failed()
	} else if part == partConfiguration || part == partDomains {
		i.rules.report.Reloads.Loaded(time.Now())
	}
	i.rules.report.Reloads.SetGood(i.reloads.ended(part, err))
}

// certificatesReloaded returns the callback of a handshake that found changed files.
func (i *Instance) certificatesReloaded(part string) func(error) {
	return func(err error) { i.reloadEnded(part, err) }
}

func (i *Instance) reloadStatus() admin.ReloadStatus {
	succeeded, failed := i.rules.report.Reloads.Counts()
	return admin.ReloadStatus{
		Loaded: i.rules.report.Reloads.Last().UTC(), Succeeded: succeeded, Failed: failed, Failures: i.reloads.list(),
		Waiting: i.waiting(),
	}
}

// waiting lists the settings that wait for a restart, without those of the command that does not run.
func (i *Instance) waiting() []string {
	other := i.otherCommand()
	return slices.DeleteFunc(i.options.Config.NeedsRestart(i.config.Load()), func(path string) bool {
		return path == other || strings.HasPrefix(path, other+".")
	})
}

// otherCommand is the section of the command that does not run.
func (i *Instance) otherCommand() string {
	if i.options.Server {
		return "proxy"
	}
	return "server"
}

// reloadNow serves ctl reload. The status is 200 when all parts were reloaded, 202 when settings wait for a restart,
// and 409 when a part failed. All these answers have a ReloadStatus.
func (i *Instance) reloadNow(w http.ResponseWriter, _ *http.Request) {
	err := i.Reload()
	if errors.Is(err, errStopping) {
		writeText(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	if err == nil {
		select {
		case i.reloaded <- struct{}{}: // The watch starts again and compares with the files just read.
		default:
		}
	}
	s := i.reloadStatus()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case len(s.Failures) > 0:
		w.WriteHeader(http.StatusConflict)
	case len(s.Waiting) > 0:
		w.WriteHeader(http.StatusAccepted)
	}
	writeJSON(i.options.Log, w, s)
}
