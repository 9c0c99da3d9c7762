package app

import (
	"runtime"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
)

// Status returns the current state of the instance.
func (i *Instance) Status() admin.Status {
	s := admin.Status{
		Version: i.options.Version, Commit: i.options.Commit, Go: runtime.Version(),
		State: "serving", Started: i.started.UTC(), UptimeSeconds: int64(time.Since(i.started).Seconds()), Reload: i.reloadStatus(),
	}
	if i.draining.Load() {
		s.State = "draining"
	}
	for _, p := range i.components {
		p.Status(&s)
	}
	return s
}
