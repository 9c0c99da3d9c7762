package proxy

import (
	"github.com/headgate/headgate/internal/config"
)

// DataPlaneTerms returns the terms of the start line about the data plane. A note says that its setting goes away. An instance
// without a proxy has none.
func DataPlaneTerms(p *config.Proxy) []any {
	if p.Upstream == nil {
		return nil
	}
	terms := []any{"data_plane", string(p.DataPlane)}
	if note := p.DataPlaneNote(); note != "" {
		terms = append(terms, "data_plane_note", note)
	}
	return terms
}
