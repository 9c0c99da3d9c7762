package calls

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const (
	pageRefused = "web pages of other sites may not send requests here: send the request from a program, or type its address"
	// browserRefused is the answer to a browser that does not say which site sends the request.
	browserRefused = "a browser does not say here whether a web page sends this request: use headgate ctl or a program like curl, or " +
		"the name localhost on the same machine"
)

// OwnSite refuses requests of web pages of other sites, whose browser may reach this listener. It also refuses GET: a page does not
// read the answer, and still makes the instance work.
func OwnSite(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if fromOtherSite(r) {
			WriteText(w, http.StatusForbidden, pageRefused)
			return
		}
		next(w, r)
	}
}

// OwnSiteOrProgram is OwnSite for calls that change something, or cost more than the list of what the instance has. It also refuses a
// browser that does not say which site sends the request. Browsers leave Sec-Fetch-Site out for addresses of a network without TLS,
// and a page can keep them from sending Referer.
func OwnSiteOrProgram(next http.HandlerFunc) http.HandlerFunc {
	return OwnSite(func(w http.ResponseWriter, r *http.Request) {
		silent := r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "" && r.Header.Get("Referer") == ""
		if silent && fromBrowser(r.UserAgent()) {
			WriteText(w, http.StatusForbidden, browserRefused)
			return
		}
		next(w, r)
	})
}

// Guarded is in front of all calls, and refuses what none of them may accept: requests of web pages of other sites, and requests with
// another method than GET and HEAD of a browser that does not say which site sends them. Links of other sites may open a page: see
// opensPage.
func Guarded(next http.HandlerFunc) http.HandlerFunc {
	changing := OwnSiteOrProgram(next)
	reading := OwnSite(next)
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			changing(w, r)
		case opensPage(r):
			next(w, r)
		default:
			reading(w, r)
		}
	}
}

// opensPage reports whether a browser opens the console in a tab, as by a link that an operator has pasted into a chat. Its files have
// no data. Their headers keep them out of frames.
func opensPage(r *http.Request) bool {
	return (r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, "/console/")) &&
		slices.Equal(r.Header["Sec-Fetch-Mode"], []string{"navigate"}) && slices.Equal(r.Header["Sec-Fetch-Dest"], []string{"document"})
}

// fromBrowser reports whether a User-Agent may be that of a browser. All browsers begin with Mozilla/, and so does PowerShell, which no
// browser names. A page that writes a User-Agent of its own does not reach this listener: for such a field, browsers send Origin, and
// ask with OPTIONS first.
func fromBrowser(agent string) bool {
	return strings.HasPrefix(agent, "Mozilla/") && !strings.Contains(agent, "PowerShell/")
}

// fromOtherSite reports whether a browser says that a page of another origin sends the request. A request without the fields of
// browsers is that of a program.
func fromOtherSite(r *http.Request) bool {
	switch site := r.Header.Values("Sec-Fetch-Site"); {
	case len(site) > 1:
		return true
	case len(site) == 1 && site[0] != "":
		return site[0] != "same-origin" && site[0] != "none" // A typed address has none.
	}
	for _, field := range []string{"Origin", "Referer"} {
		for _, text := range r.Header.Values(field) {
			if from, err := url.Parse(text); err != nil || from.Host != r.Host {
				return true
			}
		}
	}
	return false
}
