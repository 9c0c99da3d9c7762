package app

import (
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/guard"
)

func (r *rules) listBans(w http.ResponseWriter, _ *http.Request) {
	now := r.storeNow()
	entries, more := r.guard.Bans(now)
	writeJSON(r.log, w, admin.Bans{Now: now, Bans: entries, More: more})
}

// liftBan ends one ban.
func (r *rules) liftBan(w http.ResponseWriter, req *http.Request) {
	lifted, err := r.guard.Lift(req.Context(), req.PathValue("id"))
	switch {
	case err != nil:
		r.log.Error("ban not lifted", "error", err)
		writeText(w, http.StatusServiceUnavailable, "the store is unreachable: try again")
	case !lifted:
		writeText(w, http.StatusNotFound, "no such ban: the ban may have expired")
	default:
		r.log.Info("ban lifted", "key", r.banned(req.PathValue("id")))
		writeText(w, http.StatusOK, "lifted")
	}
}

// banned names the key of a ban for the log, as log.keys says.
func (r *rules) banned(id string) string {
	key, _ := guard.KeyOfBan(id)
	if names := r.report.KeyNames(); names != nil {
		return string(names.AppendKey(nil, key))
	}
	return ""
}

// writeJSON sends value as indented JSON.
func writeJSON(log *slog.Logger, w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		log.Debug("client did not read the whole answer", "error", err)
	}
}
