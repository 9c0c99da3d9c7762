package calls

import (
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Parameters lets a call through if its query has only parameters of these names, each once and with a value. A
// misspelt dry_run would otherwise be a change, and a misspelt quota a reset of all quotas.
func Parameters(log *slog.Logger, next http.HandlerFunc, names ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if f := checkParameters(r.URL.RawQuery, "", names); f != nil {
			Fail(log, w, f)
			return
		}
		next(w, r)
	}
}

// RepeatedParameter is Parameters for a call with one more parameter, which may be there several times.
func RepeatedParameter(log *slog.Logger, next http.HandlerFunc, repeated string, names ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if f := checkParameters(r.URL.RawQuery, repeated, append([]string{repeated}, names...)); f != nil {
			Fail(log, w, f)
			return
		}
		next(w, r)
	}
}

func checkParameters(query, repeated string, names []string) *Failure {
	fix := "use " + strings.Join(names, ", ")
	values, err := url.ParseQuery(query)
	if err != nil {
		return BadRequest("the query of the URL is not valid (" + err.Error() + "): write NAME=VALUE&NAME=VALUE, percent-encoded")
	}
	for name, all := range values {
		switch {
		case !slices.Contains(names, name):
			return BadRequest("the query of the URL has a parameter that this call does not know: " + fix)
		case len(all) > 1 && name != repeated || slices.Contains(all, ""):
			return BadRequest(name + " is empty or there more than once: give it one value, or leave it out")
		}
	}
	return nil
}
