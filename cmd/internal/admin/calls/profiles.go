package calls

import (
	"net/http/pprof"

	"github.com/headgate/headgate/internal/config"
)

// Profiles lists the profiles of the process.
func Profiles() []Call {
	return []Call{
		{"GET /debug/pprof/", config.ScopeAdminister, OwnSiteOrProgram(pprof.Index)},
		{"GET /debug/pprof/cmdline", config.ScopeAdminister, OwnSiteOrProgram(pprof.Cmdline)},
		{"GET /debug/pprof/profile", config.ScopeAdminister, OwnSiteOrProgram(pprof.Profile)},
		{"GET /debug/pprof/symbol", config.ScopeAdminister, OwnSiteOrProgram(pprof.Symbol)},
		{"POST /debug/pprof/symbol", config.ScopeAdminister, OwnSiteOrProgram(pprof.Symbol)}, // go tool pprof sends many addresses.
		{"GET /debug/pprof/trace", config.ScopeAdminister, OwnSiteOrProgram(pprof.Trace)},
	}
}
