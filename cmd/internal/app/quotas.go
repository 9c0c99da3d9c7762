package app

import (
	"github.com/headgate/headgate/internal/config"
)

// quotasOnly is the component rules for a change of customers: it keeps everything that was read from files, and gives the
// guard other quotas.
type quotasOnly struct{ *rules }

// Reload prepares the quotas of next. Its rules are those in effect.
func (q quotasOnly) Reload(next *config.Config) (Change, error) {
	r := q.rules
	described := r.described
	quotas, err := next.Quotas()
	if err != nil {
		return Change{}, err
	}
	described.Quotas = quotas
	prepared, err := r.guard.Prepare(described)
	if err != nil {
		return Change{}, err
	}
	commit := func() {
		prepared.Commit()
		r.described = described
		r.config.Store(next)
	}
	return Change{Commit: commit, Discard: prepared.Discard}, nil
}
