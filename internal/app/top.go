package app

import (
	"net/http"
	"strconv"

	"github.com/headgate/headgate/internal/admin"
)

// Bounds of the number of keys in /api/v1/top.
const (
	defaultTop = 20
	maxTop     = 1024
)

// listTop lists the keys with the most refusals. ?rule=NAME selects a rule, and ?top=N bounds
// the number of keys.
func (r *rules) listTop(w http.ResponseWriter, req *http.Request) {
	n := defaultTop
	if text := req.URL.Query().Get("top"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 || n > maxTop {
			writeText(w, http.StatusBadRequest, "top must be a number from 1 to "+strconv.Itoa(maxTop))
			return
		}
	}
	keys, named := r.report.TopKeys(req.URL.Query().Get("rule"), n)
	if !named {
		writeText(w, http.StatusNotFound, admin.KeysOff)
		return
	}
	writeJSON(r.log, w, admin.Top{TopKeys: keys})
}
