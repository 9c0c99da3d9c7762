package app

import (
	"net/http"
	"strconv"

	"github.com/headgate/headgate/internal/admin"
)

// Bounds of how many keys /api/v1/top lists.
const (
	usualTop = 20
	mostTop  = 1024
)

// listTop lists the keys with most refusals: of ?rule=NAME, at most ?top=N.
func (r *rules) listTop(w http.ResponseWriter, req *http.Request) {
	n := usualTop
	if text := req.URL.Query().Get("top"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 || n > mostTop {
			say(w, http.StatusBadRequest, "top must be a number from 1 to "+strconv.Itoa(mostTop))
			return
		}
	}
	keys, named := r.report.TopKeys(req.URL.Query().Get("rule"), n)
	if !named {
		say(w, http.StatusNotFound, admin.KeysOff)
		return
	}
	tell(r.log, w, admin.Top{TopKeys: keys})
}
