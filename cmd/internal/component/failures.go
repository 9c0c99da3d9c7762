package component

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/internal/config"
)

// maxReloadError bounds the stored text of an error, in bytes. config.Faults has its own bound.
const maxReloadError = 4096

func newReloadFailure(part string, err error, at time.Time) admin.ReloadFailure {
	f := admin.ReloadFailure{Part: part, At: at.UTC(), Error: err.Error()}
	if faults, found := errors.AsType[config.Faults](err); found {
		for i := range faults {
			f.Faults = append(f.Faults, calls.FaultOf(&faults[i]))
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

// Failures has the parts whose last reload failed, with at most one failure per part.
type Failures struct {
	mu       sync.Mutex
	failures []admin.ReloadFailure
}

// Ended records the result of a part's reload, and reports whether no part has a failure.
func (s *Failures) Ended(part string, err error) (allGood bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = slices.DeleteFunc(s.failures, func(f admin.ReloadFailure) bool { return f.Part == part })
	if err != nil {
		s.failures = append(s.failures, newReloadFailure(part, err, time.Now()))
	}
	return len(s.failures) == 0
}

// List gives the failures.
func (s *Failures) List() []admin.ReloadFailure {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.failures)
}
