package xds

import (
	"fmt"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
)

// maxDescriptors is more than the largest file has.
const maxDescriptors = 100_000

// Domains converts resources to the domains of a guard, with the checks of
// [config.ParseEnvoy] for files. A domain of several resources is a fault, unless merge is set. An
// error is of type [config.Faults], with the faults of all resources:
//
//	resource "basic": descriptors[0].key: is empty: write the key of an entry
//
// At most 100,000 descriptors are converted.
func Domains(resources []Resource, merge bool) ([]guard.Domain, error) {
	left := maxDescriptors
	trees := make([]config.EnvoyTree, len(resources))
	for i, r := range resources {
		name := fmt.Sprintf("resource %q", cut(r.Name, 100))
		if left -= count(r.Descriptors, left); left < 0 {
			return nil, config.Faults{{
				File: name, Problem: fmt.Sprintf("the resources up to this one have more than %d descriptors", maxDescriptors),
				Fix: "send fewer",
			}}
		}
		fields := map[string]any{"domain": r.Domain}
		if len(r.Descriptors) > 0 {
			fields["descriptors"] = treesOf(r.Descriptors)
		}
		trees[i] = config.EnvoyTree{Name: name, Root: fields}
	}
	return config.ParseEnvoyTrees(trees, merge)
}

// count returns the number of descriptors on all levels. Above left, it stops to count.
func count(all []Descriptor, left int) int {
	n := len(all)
	for i := range all {
		if n > left {
			break
		}
		n += count(all[i].Descriptors, left-n)
	}
	return n
}

func treesOf(all []Descriptor) []any {
	trees := make([]any, len(all))
	for i := range all {
		trees[i] = all[i].tree()
	}
	return trees
}

// tree returns the fields of a descriptor in a file. It leaves out the defaults, but no key.
func (d *Descriptor) tree() map[string]any {
	fields := map[string]any{"key": d.Key}
	set(fields, "value", d.Value)
	set(fields, "shadow_mode", d.ShadowMode)
	set(fields, "detailed_metric", d.DetailedMetric)
	set(fields, "quota_mode", d.QuotaMode)
	if d.Metadata != nil {
		fields["metadata"] = d.Metadata
	}
	if d.RateLimit != nil {
		fields["rate_limit"] = d.RateLimit.tree()
	}
	if len(d.Descriptors) > 0 {
		fields["descriptors"] = treesOf(d.Descriptors)
	}
	return fields
}

// tree returns the fields of a limit in a file. The unit of an unlimited limit may be UNKNOWN.
func (l *RateLimit) tree() map[string]any {
	fields := map[string]any{}
	set(fields, "requests_per_unit", float64(l.RequestsPerUnit))
	set(fields, "unlimited", l.Unlimited)
	set(fields, "name", l.Name)
	if !l.Unlimited || l.Unit != "UNKNOWN" {
		set(fields, "unit", l.Unit)
	}
	if len(l.Replaces) > 0 {
		others := make([]any, len(l.Replaces))
		for i, name := range l.Replaces {
			others[i] = map[string]any{"name": name}
		}
		fields["replaces"] = others
	}
	return fields
}

// set sets a field to a value, unless the value is the default.
func set[T comparable](fields map[string]any, name string, value T) {
	var none T
	if value != none {
		fields[name] = value
	}
}
