package config

import "github.com/headgate/headgate/internal/config/field"

// DataPlane says which HTTP code of the proxy serves connections.
type DataPlane string

// The values of data_plane.
const (
	// DataPlaneFast serves plain HTTP/1.1 requests with Headgate's own server and client, and
	// all other requests with net/http.
	DataPlaneFast DataPlane = "fast"
	// DataPlaneStandard serves all requests with net/http.
	DataPlaneStandard DataPlane = "standard"
)

// defaultDataPlane is the data plane of a configuration that sets none.
const defaultDataPlane = DataPlaneStandard

// dataPlane reads the data plane.
func (s *section) dataPlane(p *Proxy) {
	oneOf(s, s.declare("data_plane", field.Taken, "HTTP code that serves new connections: fast, or standard for net/http alone."),
		&p.DataPlane, []choice[DataPlane]{
			{word: string(DataPlaneFast), value: DataPlaneFast},
			{word: string(DataPlaneStandard), value: DataPlaneStandard},
		})
}

// DataPlaneNote returns a sentence for the operator if DataPlaneFast does not make the
// connections to the upstream, and "" otherwise.
func (p *Proxy) DataPlaneNote() string {
	if p.DataPlane != DataPlaneFast || p.Upstream == nil {
		return ""
	}
	switch p.Upstream.Scheme {
	case "https", "h2c":
		return "connections to an upstream of " + p.Upstream.Scheme +
			" use net/http's transport: data_plane fast makes its own connections to http and unix only"
	default:
		return ""
	}
}
