package config

import (
	"cmp"

	"github.com/headgate/headgate/internal/config/field"
)

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

// dataPlane reads the data plane.
func (s *section) dataPlane(p *Proxy) {
	name := s.declare("data_plane", field.Taken, "The next version does not have this setting. standard serves all requests of new "+
		"connections with net/http, which takes more processor time than the default.")
	oneOf(s, name, &p.DataPlane, []choice[DataPlane]{
		{word: string(DataPlaneFast), value: DataPlaneFast},
		{word: string(DataPlaneStandard), value: DataPlaneStandard},
	})
	if v, ok := s.given(name); ok {
		p.DataPlaneSetting = cmp.Or(v.variable, v.path)
	}
}

// DataPlaneNote tells the operator that the setting of the data plane goes away. It returns "" if neither the file nor a variable has it.
func (p *Proxy) DataPlaneNote() string {
	if p.DataPlaneSetting == "" || p.Upstream == nil {
		return ""
	}
	effect := "fast is the default: remove the setting"
	if p.DataPlane == DataPlaneStandard {
		effect = "standard serves all requests with net/http, which takes more processor time than the default: " +
			"remove the setting, and report what fails without it"
	}
	return p.DataPlaneSetting + ": the next version does not have this setting; " + effect
}
