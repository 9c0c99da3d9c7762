package proxy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

func identityCorpus() []*conversation {
	return each("GET /user/x HTTP/1.1\r\nHost: a.example\r\n%s\r\n\r\n"+plainRequest,
		"X-Forwarded-For: 1.2.3.4", "X-Forwarded-For: 1.2.3.4, 5.6.7.8", "X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-For: 5.6.7.8", "X-Forwarded-For: ", "X-Forwarded-For: x", "x-forwarded-for: ::1", "X_Forwarded_For: 1.2.3.4",
		"X-Forwarded-Host: b.example", "X-Forwarded-Host: b\r\nX-Forwarded-Host: c", "X-Forwarded-Proto: https", "X-Forwarded-Proto: https, http", "X-Forwarded-Server: x", "X-Forwarded-Port: 1", "Forwarded: for=1.2.3.4",
		"X-User-Ip: 1.2.3.4", "X-User-Ip: 1.2.3.4\r\nX-User-Ip: 5.6.7.8", "X-User-Ip: ", "X-User-Ip: x", "X_User_Ip: 1.2.3.4", "x-user-ip: 1.2.3.4\r\nConnection: x-user-ip", "X-Real-Ip: 1.2.3.4",
		"X-Request-Id: abc", "X-Request-Id: a b", "X-Request-Id: ", "X-Request-Id: a\r\nX-Request-Id: b", "X-Request-Id: "+strings.Repeat("a", 128), "X-Request-Id: "+strings.Repeat("a", 129), "x-request-id: abc",
		"X_Request_Id: abc", "X-Request-Id: abc\r\nConnection: X-Request-Id", "X-Request-Id: é", "X-Request-Id: \"a\"", "Headgate-Warning: forged", "headgate_warning: forged", "X-Service-Level: premium", "X_Service_Level: premium",
		"X-Service-Level: premium\r\nConnection: x-service-level", "Headgate-Anything: x", "RateLimit: x", "RateLimit-Policy: x", "X: 1")
}

func ruleCorpus() (all []*conversation) {
	for _, path := range []string{"/denied/x", "/delayed/x", "/soft/x", "/redirected/x", "/redirected/x?secret=1", "/degraded/x", "/unavailable/x", "/method/x", "/asked/x", "/host/x"} {
		for _, line := range []string{"GET %s HTTP/1.1", "HEAD %s HTTP/1.1", "DELETE %s HTTP/1.1", "POST %s HTTP/1.1", "GET %s HTTP/1.0"} {
			all = append(all, framed(fmt.Sprintf(line, path), "X-Ask: yes\r\nX-Service-Level: premium\r\n", plainRequest))
		}
		all = append(all, framed("GET "+path+" HTTP/1.1", "X-Ask: no\r\n", plainRequest), framed("GET "+path+" HTTP/1.1", "Accept: text/html\r\nConnection: close\r\n", ""))
	}
	return all
}

// answerCorpus has each answer of the recorder, with methods and versions that change how the
// answer is framed.
func answerCorpus() (all []*conversation) {
	for _, name := range slices.Sorted(maps.Keys(replyTable)) {
		if name == "early" {
			continue // The end of the body and the answer race.
		}
		for _, line := range []string{"GET /x/%s HTTP/1.1", "HEAD /x/%s HTTP/1.1", "GET /x/%s HTTP/1.0"} {
			all = append(all, framed(fmt.Sprintf(line, name), "", plainRequest))
		}
		all = append(all, framed("POST /x/"+name+" HTTP/1.1", "Content-Length: 3\r\n", "abc"+plainRequest), framed("GET /x/"+name+" HTTP/1.1", "Connection: close\r\n", plainRequest),
			framed("GET /x/"+name+" HTTP/1.0", "Connection: keep-alive\r\n", plainRequest), framed("GET /x/"+name+" HTTP/1.1", "TE: trailers\r\n", plainRequest),
			framed("GET /soft/"+name+" HTTP/1.1", "Accept-Encoding: gzip\r\n", plainRequest))
	}
	return all
}

// pipelineCorpus sends pairs of plain and odd requests on one connection, in both orders.
func pipelineCorpus() (all []*conversation) {
	plain := []string{
		plainRequest, "POST /p HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\n\r\nabc", "HEAD /p HTTP/1.1\r\nHost: a.example\r\n\r\n", "GET /denied/p HTTP/1.1\r\nHost: a.example\r\n\r\n",
		"POST /denied/p HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\n\r\nabc", "GET /x/chunked HTTP/1.1\r\nHost: a.example\r\n\r\n", "GET /delayed/p HTTP/1.1\r\nHost: a.example\r\n\r\n",
	}
	odd := []string{
		"POST /o HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "GET http://b.example/o HTTP/1.1\r\nHost: a.example\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n",
		"POST /o HTTP/1.1\r\nHost: a.example\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc", "GET /o HTTP/1.0\r\nHost: a.example\r\nConnection: keep-alive\r\n\r\n", "PURGE /o HTTP/1.1\r\nHost: a.example\r\n\r\n",
		"GET /o HTTP/1.1\r\nHost: a.example\r\nTE: trailers\r\n\r\n", "GET /o HTTP/1.1\r\nHost: a.example\r\nConnection: X-Api-Key\r\nX-Api-Key: k\r\n\r\n", "GET /o HTTP/1.1\nHost: a.example\n\n",
		"GET /o HTTP/1.1\r\nHost: bücher.example\r\n\r\n", "GET /o HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n", "GET /o HTTP/1.1\r\nHost: a.example\r\nX: 1\r\n 2\r\n\r\n",
		"CONNECT a.example:1 HTTP/1.1\r\nHost: a.example\r\n\r\n", "GET /o HTTP/1.1\r\nHost: a.example\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", "\r\nGET /o HTTP/1.1\r\nHost: a.example\r\n\r\n",
	}
	for i, p := range plain {
		for j, o := range odd {
			all = append(all, said(fmt.Sprintf("plain %d, odd %d, plain", i, j), p+o+p), said(fmt.Sprintf("odd %d, plain %d, odd", j, i), o+p+o))
		}
		for j, q := range plain {
			all = append(all, said(fmt.Sprintf("plain %d, plain %d", i, j), p+q), said(fmt.Sprintf("plain %d, plain %d five times", i, j), strings.Repeat(p+q, 5)))
		}
	}
	return all
}

// sizeCorpus has headers near the bounds of the server and of buffers.
func sizeCorpus() (all []*conversation) {
	for _, n := range []int{1000, 1970, 2040, 4000, 4050, 4090, 4096, 4100, 8000, 8100, 8192, 8300, 16384, 70000} {
		all = append(all,
			framed("GET /size HTTP/1.1", "X: "+strings.Repeat("v", n)+"\r\n", plainRequest),
			framed("GET /"+strings.Repeat("t", n)+" HTTP/1.1", "", plainRequest))
	}
	for _, n := range []int{10, 100, 200, 400, 1000} {
		all = append(all, framed("GET /many HTTP/1.1", strings.Repeat("X: 1\r\n", n), plainRequest), framed("GET /names HTTP/1.1", names(n), plainRequest))
	}
	return all
}

// names returns n fields with different names.
func names(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "X-%d: %d\r\n", i, i)
	}
	return text.String()
}
