package calls

import (
	"net/http/pprof"

	"github.com/headgate/headgate/internal/config"
)

// Profiles lists the profiles of the process.
func Profiles() []Call {
	return []Call{
		{"/debug/pprof/", config.ScopeAdminister, OwnSiteOrProgram(pprof.Index)},
		{"/debug/pprof/cmdline", config.ScopeAdminister, OwnSiteOrProgram(pprof.Cmdline)},
		{"/debug/pprof/profile", config.ScopeAdminister, OwnSiteOrProgram(pprof.Profile)},
		{"/debug/pprof/symbol", config.ScopeAdminister, OwnSiteOrProgram(pprof.Symbol)},
		{"/debug/pprof/trace", config.ScopeAdminister, OwnSiteOrProgram(pprof.Trace)},
	}
}
