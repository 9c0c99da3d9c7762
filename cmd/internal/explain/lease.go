package explain

import (
	"strings"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/lease/bucket"
	"github.com/headgate/headgate/rule"
)

// noServer is a source whose leases never come: an explanation asks no server.
type noServer struct{}

// noLeases makes the leases of rules: the fallbacks decide.
func noLeases() (*bucket.Table, error) { return bucket.New(bucket.Config{Source: noServer{}}) }

// Lease implements bucket.Source.
func (noServer) Lease(string, int64, func(bucket.Rate)) (bucket.Lease, error) {
	return nil, bucket.ErrNoLease
}

// writeLease names the resource of a rule with a lease.
func (e *explanation) writeLease(b *strings.Builder, r *guard.Rule) {
	if name := e.Lease(r); name != "" {
		linef(b, "lease", "%s; until a server gives a lease of it, the fallback decides: %s", name, r.Fallback)
	}
}

// Lease names the resource of a rule with a lease; "" for others.
func (r *Reading) Lease(of *guard.Rule) string {
	if of.Lease.Resource == "" {
		return ""
	}
	resource, err := rule.ParseResource(of.Lease.Resource, of.Key)
	if err != nil {
		return "" // The guard has accepted the same name.
	}
	return string(resource.Append(nil, r.Seen()))
}
