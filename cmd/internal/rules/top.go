package rules

import (
	"net/http"
	"strconv"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/rule"
)

// Bounds of the number of keys in /api/v1/top.
const (
	defaultTop = 20
	maxTop     = 1024
	// maxShownName bounds a name that an answer repeats.
	maxShownName = 128
)

// unknown says that a name is not known, and which one is near.
func (r *Rules) unknown(name string) string {
	var names []string
	for _, counted := range r.report.Rules() {
		names = append(names, counted.Rule.Name)
	}
	text := admin.UnknownName + strconv.Quote(name[:min(len(name), maxShownName)]) + ": "
	if near := rule.Nearest(name, names); near != "" {
		return text + "did you mean " + near + "?"
	}
	return text + "headgate ctl status lists the rules"
}

// listTop lists the keys with the most refusals. ?rule=NAME selects a rule, and ?top=N bounds
// the number of keys.
func (r *Rules) listTop(w http.ResponseWriter, req *http.Request) {
	n := defaultTop
	if text := req.URL.Query().Get("top"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 || n > maxTop {
			calls.WriteText(w, http.StatusBadRequest, "top must be a number from 1 to "+strconv.Itoa(maxTop))
			return
		}
	}
	name := req.URL.Query().Get("rule")
	names := r.report.KeyNames()
	if r.config.Load().Log.Keys == config.KeysByReader && access.MayAdminister(req.Context()) {
		names = rule.PlainKeyNames()
	}
	keys, named := r.report.TopKeysAs(name, n, names)
	switch {
	case !named:
		calls.WriteText(w, http.StatusNotFound, admin.KeysOff)
		return
	case name != "" && len(keys.Keys) == 0 && !r.guard.CountsAs(name): // A rule that a reload has removed may still have refusals.
		calls.WriteText(w, http.StatusNotFound, r.unknown(name))
		return
	}
	calls.WriteJSON(r.log, w, admin.Top{TopKeys: keys})
}
