package app

import (
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/headgate/headgate/internal/admin"
)

func (r *rules) listBans(w http.ResponseWriter, _ *http.Request) {
	now := r.storeNow()
	entries, more := r.guard.Bans(now)
	tell(r.log, w, admin.Bans{Now: now, Bans: entries, More: more})
}

// liftBan ends one ban. It is the one thing that the admin address changes.
func (r *rules) liftBan(w http.ResponseWriter, req *http.Request) {
	lifted, err := r.guard.Lift(req.Context(), req.PathValue("id"))
	switch {
	case err != nil:
		r.log.Error("a ban could not be lifted", "error", err)
		say(w, http.StatusServiceUnavailable, "the store does not answer: try again")
	case !lifted:
		say(w, http.StatusNotFound, "no such ban: it may have ended")
	default:
		r.log.Info("a ban was lifted", "id", req.PathValue("id"))
		say(w, http.StatusOK, "lifted")
	}
}

// tell answers with JSON.
func tell(log *slog.Logger, w http.ResponseWriter, what any) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(what); err != nil {
		log.Debug("an answer was not read to its end", "error", err)
	}
}
