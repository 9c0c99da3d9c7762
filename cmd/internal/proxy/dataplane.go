package proxy

import (
	"github.com/headgate/headgate/internal/config"
)

// noFastNote is the note of the start line where fastAvailable reports false.
const noFastNote = "data_plane fast runs on Linux only: data_plane standard serves instead"

// DataPlaneTerms returns the terms of the start line about the data plane of this system.
func DataPlaneTerms(p *config.Proxy) []any { return dataPlaneTerms(p, fastAvailable()) }

// dataPlaneTerms returns the terms of the start line about the data plane that serves new
// connections. A note says where it differs from the configured one. An instance without a
// proxy has none.
func dataPlaneTerms(p *config.Proxy, fast bool) []any {
	if p.Upstream == nil {
		return nil
	}
	plane, note := p.DataPlane, p.DataPlaneNote()
	if plane == config.DataPlaneFast && !fast {
		plane, note = config.DataPlaneStandard, noFastNote
	}
	terms := []any{"data_plane", string(plane)}
	if note != "" {
		terms = append(terms, "data_plane_note", note)
	}
	return terms
}
