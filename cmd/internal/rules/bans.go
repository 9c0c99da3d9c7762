package rules

import (
	"net/http"

	"github.com/headgate/headgate/cmd/internal/access"
	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/admin/calls"
	"github.com/headgate/headgate/cmd/internal/objects"
	"github.com/headgate/headgate/guard"
)

// listBans lists the bans. Their keys are plain for callers that may lift them, and named as in logs for others.
func (r *Rules) listBans(w http.ResponseWriter, req *http.Request) {
	now := r.storeNow()
	entries, more := r.guard.Bans(now)
	if !access.MayAdminister(req.Context()) {
		for i := range entries {
			entries[i].Key, entries[i].ID = r.banned(entries[i].ID), "" // The ID has the key.
		}
	}
	calls.WriteJSON(r.log, w, admin.Bans{Now: now, Bans: entries, More: more})
}

// liftBan ends one ban. With dry_run, it only looks for it.
func (r *Rules) liftBan(w http.ResponseWriter, req *http.Request) {
	id := req.PathValue("id")
	terms, f := calls.TermsOf(req, false)
	if f != nil {
		calls.Fail(r.log, w, f)
		return
	}
	name, found, err := r.guard.Liftable(req.Context(), id)
	if found && !terms.DryRun {
		found, err = r.guard.Lift(req.Context(), id)
	}
	record := objects.Record(req, "keys/"+name+" "+r.banned(id), terms.Reason)
	record.Action, record.Before, record.After = "lift", "banned", "not banned"
	switch {
	case err != nil:
		if !terms.DryRun {
			objects.Done(r.host, &record, "", err)
		}
		calls.WriteText(w, http.StatusServiceUnavailable, "the store is unreachable: try again")
	case !found:
		calls.WriteText(w, http.StatusNotFound, "no such ban: the ban may have expired")
	case terms.DryRun:
		calls.WriteText(w, http.StatusOK, "would be lifted")
	default:
		objects.Done(r.host, &record, "", nil)
		calls.WriteText(w, http.StatusOK, "lifted")
	}
}

// banned names the key of a ban for the log, as log.keys says.
func (r *Rules) banned(id string) string {
	key, _ := guard.KeyOfBan(id)
	if names := r.report.KeyNames(); names != nil {
		return string(names.AppendKey(nil, key))
	}
	return ""
}
