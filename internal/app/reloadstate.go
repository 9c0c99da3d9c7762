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
)

// The parts of a reload that fail one by one, as ReloadFailure.Part has them.
const (
	partConfiguration = "configuration"
	partCertificates  = "certificates"
	partUpstreamCerts = "upstream certificates"
	partAccessLog     = "access log"
)

// ReloadStatus is how the last reload went, for /api/v1/status and /api/v1/reload.
type ReloadStatus struct {
	// Loaded is when the configuration in effect was read.
	Loaded    time.Time `json:"loaded"`
	Succeeded uint64    `json:"succeeded"`
	Failed    uint64    `json:"failed"`
	// Failures are the parts whose last reload failed; the values before stay in effect.
	Failures []ReloadFailure `json:"failures,omitempty"`
}

// ReloadFailure is why a part was not reloaded.
type ReloadFailure struct {
	// Part is configuration, certificates, upstream certificates or access log.
	Part  string    `json:"part"`
	At    time.Time `json:"at"`
	Error string    `json:"error"`
	// Faults are those of a configuration that could be read.
	Faults []ReloadFault `json:"faults,omitempty"`
}

// ReloadFault is one config.Fault.
type ReloadFault struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Field   string `json:"field,omitempty"`
	Problem string `json:"problem"`
	Fix     string `json:"fix,omitempty"`
	// Text is the fault as headgate check prints it.
	Text string `json:"text"`
}

// maxReloadError bounds the text of a failure that is kept; config.Faults are bounded by themselves.
const maxReloadError = 4096

func newReloadFailure(part string, err error, at time.Time) ReloadFailure {
	f := ReloadFailure{Part: part, At: at.UTC(), Error: err.Error()}
	if faults, found := errors.AsType[config.Faults](err); found {
		for _, one := range faults {
			f.Faults = append(f.Faults, ReloadFault{one.File, one.Line, one.Column, one.Path, one.Problem, one.Fix, one.String()})
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
	failures []ReloadFailure
}

// ended notes how the reload of a part ended.
func (s *reloadState) ended(part string, err error) (allGood bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = slices.DeleteFunc(s.failures, func(f ReloadFailure) bool { return f.Part == part })
	if err != nil {
		s.failures = append(s.failures, newReloadFailure(part, err, time.Now()))
	}
	return len(s.failures) == 0
}

func (s *reloadState) list() []ReloadFailure {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.failures)
}

// reloadEnded notes how the reload of a part ended, for status and metrics.
func (i *Instance) reloadEnded(part string, err error) {
	if err != nil {
		i.report.Reloads.Failed()
	} else if part == partConfiguration {
		i.report.Reloads.Loaded(time.Now())
	}
	i.report.Reloads.SetGood(i.reloads.ended(part, err))
}

// certificatesReloaded is told by handshakes that found changed files.
func (i *Instance) certificatesReloaded(part string) func(error) {
	return func(err error) { i.reloadEnded(part, err) }
}

func (i *Instance) reloadStatus() ReloadStatus {
	succeeded, failed := i.report.Reloads.Counts()
	return ReloadStatus{
		Loaded: i.report.Reloads.Last().UTC(), Succeeded: succeeded, Failed: failed, Failures: i.reloads.list(),
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
	i.tell(w, s)
}
