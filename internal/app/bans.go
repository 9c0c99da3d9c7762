package app

import (
	"encoding/json"
	"net/http"

	"github.com/headgate/headgate/internal/admin"
)

func (i *Instance) listBans(w http.ResponseWriter, _ *http.Request) {
	now := i.storeNow()
	entries, more := i.guard.Bans(now)
	i.tell(w, admin.Bans{Now: now, Bans: entries, More: more})
}

// liftBan ends one ban. It is the one thing that the admin address changes.
func (i *Instance) liftBan(w http.ResponseWriter, r *http.Request) {
	lifted, err := i.guard.Lift(r.Context(), r.PathValue("id"))
	switch {
	case err != nil:
		i.options.Log.Error("a ban could not be lifted", "error", err)
		say(w, http.StatusServiceUnavailable, "the store does not answer: try again")
	case !lifted:
		say(w, http.StatusNotFound, "no such ban: it may have ended")
	default:
		i.options.Log.Info("a ban was lifted", "id", r.PathValue("id"))
		say(w, http.StatusOK, "lifted")
	}
}

// tell answers with JSON.
func (i *Instance) tell(w http.ResponseWriter, what any) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(what); err != nil {
		i.options.Log.Debug("an answer was not read to its end", "error", err)
	}
}
