package app

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/internal/admin"
)

// The parts of a reload that fail one by one, as ReloadFailure.Part has them.
const (
	partConfiguration = "configuration"
	partCertificates  = "certificates"
	partUpstreamCerts = "upstream certificates"
	partAccessLog     = "access log"
)

// maxReloadError bounds the text of a failure that is kept; config.Faults are bounded by themselves.
const maxReloadError = 4096

func newReloadFailure(part string, err error, at time.Time) admin.ReloadFailure {
	f := admin.ReloadFailure{Part: part, At: at.UTC(), Error: err.Error()}
	if faults, found := errors.AsType[config.Faults](err); found {
		for _, one := range faults {
			f.Faults = append(f.Faults, admin.ReloadFault{
				File: one.File, Line: one.Line, Column: one.Column, Field: one.Path, Problem: one.Problem, Fix: one.Fix, Text: one.String(),
			})
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

// reloadState has the parts whose last reload failed: at most one failure for each part.
type reloadState struct {
	mu       sync.Mutex
	failures []admin.ReloadFailure
}

// ended notes how the reload of a part ended.
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

// reloadEnded notes how the reload of a part ended, for status and metrics.
func (i *Instance) reloadEnded(part string, err error) {
	if err != nil {
		i.rules.report.Reloads.Failed()
	} else if part == partConfiguration {
		i.rules.report.Reloads.Loaded(time.Now())
	}
	i.rules.report.Reloads.SetGood(i.reloads.ended(part, err))
}

// certificatesReloaded is told by handshakes that found changed files.
func (i *Instance) certificatesReloaded(part string) func(error) {
	return func(err error) { i.reloadEnded(part, err) }
}

func (i *Instance) reloadStatus() admin.ReloadStatus {
	succeeded, failed := i.rules.report.Reloads.Counts()
	return admin.ReloadStatus{
		Loaded: i.rules.report.Reloads.Last().UTC(), Succeeded: succeeded, Failed: failed, Failures: i.reloads.list(),
	}
}

// reloadNow serves ctl reload: 200 when all parts were reloaded, else 409, each with a ReloadStatus.
func (i *Instance) reloadNow(w http.ResponseWriter, _ *http.Request) {
	err := i.Reload()
	if errors.Is(err, errStopping) {
		say(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	if err == nil {
		select {
		case i.reloaded <- struct{}{}: // The watch begins again with what was read.
		default:
		}
	}
	s := i.reloadStatus()
	w.Header().Set("Content-Type", "application/json")
	if len(s.Failures) > 0 {
		w.WriteHeader(http.StatusConflict)
	}
	tell(i.options.Log, w, s)
}
