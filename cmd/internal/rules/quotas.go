package rules

import (
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/internal/config"
)

// quotasOnly is the component Rules for a change of customers: it keeps everything that was read from files, and gives the
// guard other quotas.
type quotasOnly struct{ *Rules }

// QuotasOnly is the component for a change of customers.
func (r *Rules) QuotasOnly() component.Component { return quotasOnly{r} }

// Reload prepares the quotas of next. Its rules are those in effect.
func (q quotasOnly) Reload(next *config.Config) (component.Change, error) {
	r := q.Rules
	described := r.described
	quotas, err := next.Quotas()
	if err != nil {
		return component.Change{}, err
	}
	described.Quotas = quotas
	prepared, err := r.guard.Prepare(described)
	if err != nil {
		return component.Change{}, err
	}
	commit := func() {
		prepared.Commit()
		r.described = described
		r.config.Store(next)
	}
	return component.Change{Commit: commit, Discard: prepared.Discard}, nil
}
