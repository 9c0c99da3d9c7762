package app

import (
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/headgate/headgate/guard"
)

// Bans is what /api/v1/bans tells. Programs read it: fields are added, and none is
// renamed.
type Bans struct {
	// Now is the instance's time, which Until is to be compared with.
	Now  time.Time        `json:"now"`
	Bans []guard.BanEntry `json:"bans"`
	// More tells of bans beyond those that are remembered by name.
	More bool `json:"more"`
}

func (i *Instance) listBans(w http.ResponseWriter, _ *http.Request) {
	now := time.Now()
	entries, more := i.guard.Bans(now)
	i.tell(w, Bans{Now: now.UTC(), Bans: entries, More: more})
}

// liftBan ends one ban. It is the one thing that the admin address changes.
func (i *Instance) liftBan(w http.ResponseWriter, r *http.Request) {
	if !meantForUs(r.Host) {
		say(w, http.StatusForbidden, "ask by address, as in 127.0.0.1:9902: a name may be a page's trick")
		return
	}
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

// meantForUs reports whether a request came by an address or as localhost. A page
// in the operator's browser can make its own name point here, and be believed to be
// of one origin with us; it cannot have an address as its name.
func meantForUs(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	_, err = netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil || strings.EqualFold(name, "localhost")
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
