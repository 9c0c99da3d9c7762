package front

import (
	"cmp"
	"slices"

	"github.com/headgate/headgate/internal/lease/state"
	"github.com/headgate/headgate/internal/sorting"
)

// Resource is what is out of one resource.
type Resource struct {
	state.Usage

	Name string
}

// Resources lists all resources with claims, by name.
func (s *Service) Resources() []Resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.options.Now()
	if !s.leads(now) {
		return nil
	}
	names := s.role.server.Names(nil)
	slices.Sort(names)
	all := make([]Resource, len(names))
	for i, name := range names {
		all[i].Name = name
		all[i].Usage, _ = s.role.server.Usage(now, name)
	}
	return all
}

// Holders lists the claims of a resource, at most some of them: the largest ones first. found is false for a resource without
// claims.
func (s *Service) Holders(name string, most int) (resource Resource, all []state.HolderUsage, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.options.Now()
	resource.Name = name
	if !s.leads(now) {
		return resource, nil, false
	}
	if resource.Usage, found = s.role.server.Usage(now, name); !found {
		return resource, nil, false
	}
	all = s.role.server.Holders(now, name, nil)
	sorting.Func(all, func(a, b state.HolderUsage) int {
		return cmp.Or(cmp.Compare(b.Ledger, a.Ledger), cmp.Compare(b.Wants, a.Wants), cmp.Compare(a.Holder, b.Holder))
	})
	return resource, all[:min(len(all), most)], true
}

// Servers lists the claims of servers below this one, the largest ones first, and counts those beyond most.
func (s *Service) Servers(name string, most int) (all []state.HolderUsage, more int) {
	_, holders, _ := s.Holders(name, state.MaxHolders)
	for i := range holders {
		switch {
		case !holders[i].Server:
		case len(all) < most:
			all = append(all, holders[i])
		default:
			more++
		}
	}
	return all, more
}
