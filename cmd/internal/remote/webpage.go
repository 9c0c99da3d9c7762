package remote

import "net/http"

// OfWebPage reports whether a browser sent a request on behalf of a web page. The listeners serve no
// page. A page of the same origin therefore got there by DNS rebinding, which a comparison of Origin
// and Host would let pass. Browsers send Origin with every POST, and Sec-Fetch-Site since 2023.
func OfWebPage(h http.Header) bool { return len(h["Origin"]) > 0 || len(h["Sec-Fetch-Site"]) > 0 }
