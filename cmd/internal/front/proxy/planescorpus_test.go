package proxy

import (
	"fmt"
	"slices"
	"strings"
)

// plainRequest is a request that the strict subset of the fast plane has.
const plainRequest = "GET /plain?q=1 HTTP/1.1\r\nHost: a.example\r\nUser-Agent: t\r\nX-Api-Key: k\r\n\r\n"

// corpus returns the conversations that every test of planes uses.
func corpus() []*conversation {
	all := slices.Concat(
		requestLineCorpus(), targetCorpus(), hostCorpus(), lengthCorpus(), codingCorpus(), chunkCorpus(), syntaxCorpus(), fieldCorpus(),
		connectionCorpus(), expectCorpus(), identityCorpus(), ruleCorpus(), answerCorpus(), pipelineCorpus(), sizeCorpus(),
	)
	trusted := func(c *conversation) *conversation {
		from := *c
		from.name, from.trusted = c.name+" from a trusted peer", true
		return &from
	}
	for _, c := range slices.Concat(identityCorpus(), connectionCorpus()) {
		all = append(all, trusted(c))
	}
	for _, form := range foldedForms() {
		all = append(all, said(form.name, form.sent))
	}
	for i, c := range all {
		c.name = fmt.Sprintf("%d: %s", i, c.name)
	}
	return all
}

// framed makes a conversation of a request line, fields and a body. The fields may be empty.
func framed(line, fields, body string) *conversation {
	sent := line + "\r\nHost: a.example\r\n" + fields + "\r\n" + body
	return said(fmt.Sprintf("%s | %.120q | %.60q", line, fields, body), sent)
}

// each makes a conversation for each value of a format.
func each(format string, values ...string) (all []*conversation) {
	for _, v := range values {
		all = append(all, said(fmt.Sprintf("%.160q", fmt.Sprintf(format, v)), fmt.Sprintf(format, v)))
	}
	return all
}

func requestLineCorpus() []*conversation {
	return slices.Concat(
		each("%s /line HTTP/1.1\r\nHost: a.example\r\n\r\n",
			"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PRI", "get", "Get", "GETT", "PROPFIND", "M-SEARCH", "X!#$%&'*+-.^_`|~1",
			"G ET", "G\tET", "G\x00T", "GET\r", "(GET)", "é", "", " GET", "\r\nGET", "\r\n\r\n\r\nGET", "\nGET", "\rGET", "X\r\nGET", "\x16\x03\x01\x02", "GET\xff"),
		each("GET /version %s\r\nHost: a.example\r\n\r\n",
			"HTTP/1.0", "HTTP/1.1", "HTTP/1.2", "HTTP/2.0", "HTTP/0.9", "HTTP/3", "http/1.1", "Http/1.1", "HTTP/1.1 ", " HTTP/1.1", "HTTP/1.1\t", "HTTP/1.1\r", "HTTP/01.1",
			"HTTP/1.", "HTTP/1", "HTTP/11", "HTTP/1.10", "HTTP/1.1x", "HTTP /1.1", "HTTP/1 .1", "HTTPS/1.1", "", "x", "HTTP/1.1 HTTP/1.1", "HTTP/1.1\x00", "HTTP/-1.1"), //nolint:dupword // because the bytes repeat a word.
		each("GET /blank%sHTTP/1.1\r\nHost: a.example\r\n\r\n", "", "  ", "\t", " \t", "\v", "\xa0", "\x00"),
		each("%s", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nxx\r\n\r\n", "PRI * HTTP/2.0\r\nHost: a\r\n\r\n", "PRI * HTTP/1.1\r\nHost: a\r\n\r\nSM\r\n\r\n",
			"GET\r\n\r\n", "GET /\r\n\r\n", "\r\n", "\n\n", "GET / HTTP/1.1", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: a.example\r\n", "G", "", "\x00", "\r\n\r\n"+plainRequest,
			"GET /\nHost: a HTTP/1.1\r\nHost: a\r\n\r\n", "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\nbytes"),
	)
}

func targetCorpus() []*conversation {
	targets := slices.Concat(differentialPaths, []string{
		"http://a.example/x", "http://a.example:80/x?y", "HTTP://A.EXAMPLE/x", "https://a.example/x", "http:///x", "http://", "http:/x", "http:x", "//a.example/x", "///x", "/x?", "/x??",
		"/x?a b", "/x?a%20b", "/x?\x7f", "/\x7f", "/\x01", "/x%0d%0aHost:b", "/x?%0d%0a", "ftp://a/x", "a.example:80", "a.example", "*?x", "/*", "/x#", "#", "/?#", "/x\\..\\y", "/%",
		"/%1", "/%g1", "/%00", "/a//b", "/a/./b", "/a/b/..", "/a/b/../", "/../x", "/..", "/.", "/a%2e%2e/b", "/%2E%2E/%2e", "/x;a", "/;/x", "/a/;x/b", "/[x]", "/<x>", "/x^`",
		"/plain?x=/../y", "/plain?x=%2e%2e", "/plain?x=http://b", "/plain?" + strings.Repeat("q", 1000), "/" + strings.Repeat("a/", 300), "mailto:x", "/x y", "/x%c0%af", "/x%c0%ae%c0%ae/",
	})
	return slices.Concat(
		each("GET %s HTTP/1.1\r\nHost: a.example\r\nX-Api-Key: k\r\n\r\n"+plainRequest, targets...),
		each("OPTIONS %s HTTP/1.1\r\nHost: a.example\r\n\r\n", "*", "/", "http://a.example", "**"),
		each("HEAD %s HTTP/1.1\r\nHost: a.example\r\n\r\n"+plainRequest, "*", "/plain", "/denied/x", "/x/chunked", "/x/same", "/x/none", "/x/many", "/x/html", "/x/eof", "/x/large", "/method/x"),
		each("POST %s HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\n\r\nabc"+plainRequest, "*", "http://b.example/y", "/a/../x", "/%5cx"),
	)
}

func hostCorpus() []*conversation {
	hosts := slices.Concat(differentialHosts, []string{
		"A.EXAMPLE", "a.example.", "a.example..", "a.example:", "a.example:0", "a.example:65535", "a.example:65536", "a.example:-1", "a.example: 80", "a.example,b.example", "a.example b.example",
		"a.example/x", "a.example?x", "a.example#x", "http://a.example", "user@a.example", "a\\b", "a<b>", "a%00", "\x00", "a\x00b", "[::1]", "[::1", "::1", "[::FFFF:1.2.3.4]", "1.2.3.4.5",
		"0x7f.1", "a_b", "-a", "a-", strings.Repeat("a", 63) + ".example", strings.Repeat("a", 64) + ".example", strings.Repeat("a.", 127) + "a", strings.Repeat("a.", 130) + "a", "blocked.example",
		"BLOCKED.example:80", "a.example\t ", "\ta.example", "*", "*.example", "ａ.example", "xn--a", "a\xffb", "a'b", "a;b", "a=b", "a&b", "a!b", "a(b)", "a+b", "~", "$",
	})
	return slices.Concat(
		each("GET /host/x HTTP/1.1\r\nHost: %s\r\nX-Api-Key: k\r\n\r\n"+plainRequest, hosts...),
		each("GET /host/x HTTP/1.1\r\n%s\r\n\r\n"+plainRequest, "Host:a.example", "host: a.example", "HOST: a.example", "Host: a.example\r\nHost: a.example", "Host: a.example\r\nHost: b.example",
			"Host: a.example\r\nhost: b.example", "X: 1", "Host", "Host:", "Host : a.example", " Host: a.example", "Host\t: a.example", "Host: a.example\r\n b.example", "X: 1\r\nHost: a.example",
			"Host: \r\nHost: a.example", "Host: a.example\r\nHost:", "X-Host: b\r\nHost: a.example", "Host: a.example\r\nX-Forwarded-Host: b"), //nolint:dupword // because the bytes repeat a word.
		each("GET http://b.example/y HTTP/1.1\r\n%s\r\n\r\n", "Host: a.example", "Host: b.example", "X: 1", "Host: a\r\nHost: b"),
		each("GET /x HTTP/1.0\r\n%s\r\n", "", "Host: a.example\r\n", "Host: a\r\nHost: b\r\n", "Connection: keep-alive\r\n", "Host: a.example\r\nConnection: keep-alive\r\n"),
	)
}
