package logs_test

import "github.com/headgate/headgate/cmd/internal/lab/logs"

// lineCases has a line of each form. A line of a log is one line here too.
var lineCases = []lineCase{
	{
		name: "combined",
		line: `192.0.2.7 - - [01/Mar/2026:12:00:00 +0100] "GET /a%20b?x=1 HTTP/1.1" 200 12 "-" "curl/8"`,
		want: "combined 11:00:00 -1ns 200 192.0.2.7 GET /a%20b?x=1",
	},
	{
		name: "common with an address of IPv6",
		line: `2001:db8::7 - me [01/Mar/2026:12:00:00 +0000] "GET / HTTP/1.1" 304 -`,
		want: "common 12:00:00 -1ns 304 2001:db8::7 GET /",
	},
	{
		name: "combined, a quote in the path",
		line: `192.0.2.7 - - [01/Mar/2026:12:00:00 +0000] "GET /\"\x22\\ HTTP/1.1" 200 12 "-" "-"`,
		want: `combined 12:00:00 -1ns 200 192.0.2.7 GET /""\`,
	},
	{
		name: "combined, HTTP/0.9",
		line: `192.0.2.7 - - [01/Mar/2026:12:00:00 +0000] "GET /" 200 12 "-" "-"`,
		want: "combined 12:00:00 -1ns 200 192.0.2.7 GET /",
	},
	{
		name: "combined, a path with a space",
		line: `192.0.2.7 - - [01/Mar/2026:12:00:00 +0000] "GET /a b HTTP/1.1" 200 12 "-" "-"`,
		want: "combined 12:00:00 -1ns 200 192.0.2.7 GET /a b",
	},
	{
		name: "combined, no request line",
		line: `192.0.2.7 - - [01/Mar/2026:12:00:00 +0000] "-" 408 - "-" "-"`,
		want: "combined skip: bad request (<BADREQ>, or no request line)",
	},
	{
		name: "combined, TLS to a plain port",
		line: `192.0.2.7 - - [01/Mar/2026:12:00:00 +0000] "\x16\x03\x01\x02" 400 150 "-" "-"`,
		want: "combined skip: bad request (<BADREQ>, or no request line)",
	},
	{
		name: "combined, the status of an aborted request of morgan",
		line: `192.0.2.7 - - [01/Mar/2026:12:00:00 +0000] "GET / HTTP/1.1" - - "-" "-"`,
		want: "combined 12:00:00 -1ns 0 192.0.2.7 GET /",
	},
	{
		name: "nginx",
		line: `192.0.2.7 - - [01/Mar/2026:12:00:02 +0000] "GET /a HTTP/1.1" 499 0 "-" "-" msec=1772366402.500 request_time=2.250 host="api.example.com" header:X-Client-Id="me"`,
		want: "nginx 12:00:00.25 2.25s 499 192.0.2.7 GET /a host api.example.com client me",
	},
	{
		name: "nginx, a subrequest",
		line: `192.0.2.7 - - [01/Mar/2026:12:00:02 +0000] "GET /a HTTP/1.1" 204 0 "-" "-" msec=1772366402.500 request_time=0.001 request_length=0 uri="/auth"`,
		want: "nginx skip: subrequest of nginx",
	},
	{
		name: "nginx, an error page",
		line: `192.0.2.7 - - [01/Mar/2026:12:00:02 +0000] "GET /a HTTP/1.1" 404 0 "-" "-" msec=1772366402.500 request_time=0.001 request_length=80 uri="/404.html"`,
		want: "nginx 12:00:02.499 1ms 404 192.0.2.7 GET /a",
	},
	{
		name: "nginx, times of two upstreams",
		line: `192.0.2.7 - - [01/Mar/2026:12:00:02 +0000] "GET /a HTTP/1.1" 200 0 "-" "-" msec=1772366402.500 urt="0.701, 0.001" request_time=0.702`,
		want: "nginx 12:00:01.798 702ms 200 192.0.2.7 GET /a",
	},
	{
		name: "nginx in JSON",
		line: `{"msec":"1772366402.500","request_time":"2.250","remote_addr":"192.0.2.7","request_method":"GET","host":"api.example.com","request_uri":"/a?b","status":"200","http_x_client_id":"me","cookie_session":"s1"}`,
		want: "nginx 12:00:00.25 2.25s 200 192.0.2.7 GET /a?b host api.example.com client me session s1",
	},
	{
		name: "nginx, the combined format", format: "nginx",
		line: `192.0.2.7 - - [01/Mar/2026:12:00:02 +0000] "GET / HTTP/1.1" 200 12 "-" "curl/8"`,
		want: "nginx 12:00:02 -1ns 200 192.0.2.7 GET /",
	},
	{
		name: "haproxy",
		line: `127.0.0.1:41234 [01/Mar/2026:12:00:00.100] front~ back/s1 7/0/1/2/12 200 123 - - ---- 1/1/0/0/0 0/0 {a|b} {} "GET http://api.example.com:8080/p?q=#22 HTTP/2.0" header:X-Client-Id="me"`,
		want: `haproxy 12:00:00.107 5ms 200 127.0.0.1 GET /p?q=" host api.example.com:8080 client me`,
	},
	{
		name: "haproxy by syslog",
		line: `Mar  1 12:00:00 lb haproxy[612]: ::1:41234 [01/Mar/2026:12:00:00.100] front back/s1 0/0/0/-1/700 -1 123 - - CD-- 1/1/0/0/0 0/0 "GET /p HTTP/1.1"`,
		want: "haproxy 12:00:00.1 700ms 0 ::1 GET /p",
	},
	{
		name: "haproxy with logasap",
		line: `127.0.0.1:41234 [01/Mar/2026:12:00:00.100] front back/s1 0/0/0/10/+10 200 +123 - - ---- 1/1/0/0/0 0/0 "GET /p HTTP/1.1"`,
		want: "haproxy 12:00:00.1 10ms 200 127.0.0.1 GET /p",
	},
	{
		name: "haproxy, a tarpit",
		line: `127.0.0.1:41234 [01/Mar/2026:12:00:00.100] front front/<NOSRV> -1/1002/-1/-1/1002 500 123 - - PT-- 1/1/0/0/0 0/0 "GET /p HTTP/1.1"`,
		want: "haproxy 12:00:00.1 1.002s 500 127.0.0.1 GET /p",
	},
	{
		name: "haproxy, a refusal",
		line: `127.0.0.1:41234 [01/Mar/2026:12:00:00.100] front front/<NOSRV> 0/-1/-1/-1/0 403 123 - - PR-- 1/1/0/0/0 0/0 "GET /p HTTP/1.1"`,
		want: "haproxy 12:00:00.1 0s 403 127.0.0.1 GET /p",
	},
	{
		name: "haproxy, no request",
		line: `127.0.0.1:41234 [01/Mar/2026:12:00:00.100] front front/<NOSRV> -1/-1/-1/-1/0 400 0 - - CR-- 1/1/0/0/0 0/0 "<BADREQ>"`,
		want: "haproxy skip: bad request (<BADREQ>, or no request line)",
	},
	{
		name: "apache",
		line: `192.0.2.7 - - [01/Mar/2026:12:00:00 +0000] "GET /a HTTP/1.1" 200 12 "-" "-" begin=1772366400250000 D=2250000 host="api.example.com" header:X-Client-Id="a\"b"`,
		want: `apache 12:00:00.25 2.25s 200 192.0.2.7 GET /a host api.example.com client a"b`,
	},
	{
		name: "envoy",
		line: `[2026-03-01T12:00:00.310Z] "POST /api/v1/locations HTTP/2" 204 - 154 0 226 100 "10.0.35.28" "nsq2http" "cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" "locations" "tcp://10.0.2.1:80"`,
		want: "envoy 12:00:00.31 226ms 204  POST /api/v1/locations host locations",
	},
	{
		name: "envoy with attributes",
		line: `[2026-03-01T12:00:00.310Z] "GET / HTTP/2" 0 DC 154 0 226 - "-" "-" "-" "locations" "-" ip=10.0.35.28:4711 header:X-Client-Id="me"`,
		want: "envoy 12:00:00.31 226ms 0 10.0.35.28 GET / host locations client me",
	},
	{
		name: "istio",
		line: `[2026-03-01T12:00:00.310Z] "GET /status/418 HTTP/1.1" 418 - via_upstream - "-" 0 135 5 4 "-" "curl/7.60.0" "84961386" "httpbin:8000" "127.0.0.1:80" inbound|8000|| 127.0.0.1:41854 10.44.1.27:80 10.44.1.23:37652 outbound_.8000 default`,
		want: "envoy 12:00:00.31 5ms 418 10.44.1.23 GET /status/418 host httpbin:8000",
	},
	{
		name: "istio in JSON",
		line: `{"start_time":"2026-03-01T12:00:00.310Z","duration":5,"response_code":200,"method":"GET","path":"/x","authority":"httpbin:8000","downstream_remote_address":"10.44.1.23:37652","header:X-Client-Id":null}`,
		want: "envoy 12:00:00.31 5ms 200 10.44.1.23 GET /x host httpbin:8000",
	},
	{
		name: "caddy",
		line: `{"level":"info","ts":1772366402.5,"logger":"http.log.access.log0","msg":"handled request","request":{"remote_ip":"192.0.2.7","remote_port":"41342","proto":"HTTP/2.0","method":"GET","host":"localhost:8080","uri":"/a?b","headers":{"X-Client-Id":["me"],"Cookie":["a=b; session=s1"]}},"user_id":"","duration":2.25,"size":12,"status":200,"resp_headers":{"Server":["Caddy"]}}`,
		want: "caddy 12:00:00.25 2.25s 200 192.0.2.7 GET /a?b host localhost:8080 client me session s1",
	},
	{
		name: "caddy, a small duration",
		line: `{"level":"error","ts":1772366402.5,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"192.0.2.7","method":"GET","host":"a","uri":"/","headers":{"Cookie":["REDACTED"]}},"duration":2.5e-05,"status":0}`,
		want: "caddy 12:00:02.499975 25µs 0 192.0.2.7 GET / host a",
	},
	{
		name: "caddy, a message", format: "caddy",
		line: `{"level":"info","ts":1772366402.5,"logger":"http","msg":"server running"}`,
		want: "caddy skip: not of the access log",
	},
	{
		name: "traefik",
		line: `192.0.2.7 - - [01/Mar/2026:12:00:00 +0000] "GET /whoami HTTP/1.1" 200 341 "-" "curl/8" 17 "whoami@docker" "http://172.18.0.2:80" 21ms`,
		want: "traefik 12:00:00 21ms 200 192.0.2.7 GET /whoami",
	},
	{
		name: "traefik in JSON",
		line: `{"ClientAddr":"192.0.2.7:56442","ClientHost":"192.0.2.7","DownstreamStatus":200,"Duration":1250000,"RequestAddr":"localhost","RequestHost":"localhost","RequestMethod":"GET","RequestPath":"/whoami?a","StartUTC":"2026-03-01T12:00:00.25Z","request_X-Client-Id":"me","level":"info","msg":"","time":"2026-03-01T12:00:01Z"}`,
		want: "traefik 12:00:00.25 1.25ms 200 192.0.2.7 GET /whoami?a host localhost client me",
	},
	{
		name: "varnish",
		line: `192.0.2.7 - - [01/Mar/2026:12:00:00 +0000] "GET http://localhost:6081/a HTTP/1.1" 200 12 "-" "-" start=1772366400.250000 req=1772366402.250000 D=2500000 header:X-Client-Id="me"`,
		want: "varnish 12:00:02.25 500ms 200 192.0.2.7 GET /a host localhost:6081 client me",
	},
	{
		name: "varnish, after a restart",
		line: `192.0.2.7 - - [01/Mar/2026:12:00:00 +0000] "GET http://localhost:6081/a HTTP/1.1" 200 12 "-" "-" start=1772366400.250000 req=- D=2500000`,
		want: "varnish 12:00:00.25 2.5s 200 192.0.2.7 GET /a host localhost:6081",
	},
	{
		name: "squid",
		line: `1772366402.500   2250 192.0.2.7 TCP_MISS/200 412 GET http://example.com/a?b - HIER_DIRECT/192.0.2.9 text/html header:X-Client-Id="me"`,
		want: "squid 12:00:00.25 2.25s 200 192.0.2.7 GET /a?b host example.com client me",
	},
	{
		name: "squid, an abort",
		line: "1772366402.500    700 192.0.2.7 TCP_MISS_ABORTED/000 0 GET http://example.com/ - HIER_DIRECT/192.0.2.9 -",
		want: "squid 12:00:01.8 700ms 0 192.0.2.7 GET / host example.com",
	},
	{
		name: "squid, no request",
		line: "1772366402.500      0 192.0.2.7 NONE_NONE/000 0 - error:transaction-end-before-headers - HIER_NONE/- -",
		want: "squid skip: no request (NONE_NONE/000)",
	},
	{
		name: "lighttpd", format: "lighttpd",
		line: `192.0.2.7 - - [01/Mar/2026:12:00:00 +0000] "GET /a HTTP/1.1" 200 12 "-" "-" begin=1772366400250000 D=2250000`,
		want: "lighttpd 12:00:00.25 2.25s 200 192.0.2.7 GET /a",
	},
	{
		name: "lighttpd, the preface of HTTP/2", format: "lighttpd",
		line: `192.0.2.7 - - [01/Mar/2026:12:00:00 +0000] "PRI * HTTP/2.0" 100 0 "-" "-" begin=1772366400250000 D=2250000`,
		want: "lighttpd skip: HTTP/2 preface (PRI)",
	},
	{
		name: "headgate",
		line: `{"time":"2026-03-01T12:00:00.250000Z","remote_ip":"192.0.2.7","request_id":"x","method":"GET","host":"api.example.com","uri":"/v1?id=7","proto":"HTTP/2.0","status":429,"bytes":212,"duration":0.500000,"verdict":"deny","reason":"over_limit","rule":"product","decided_at":1772366400.350000,"identity_hash":{"header:X-Client-Id":"8add3dcf25020bb916ae7942418b07a2"},"identity":{"cookie:session":null}}`,
		want: "headgate 12:00:00.35 400ms 429 192.0.2.7 GET /v1?id=7 host api.example.com client 8add3dcf25020bb916ae7942418b07a2",
	},
	{
		name: "malformed", format: "combined",
		line: `192.0.2.7 - - [01/Mar/2026:12:00:00 +0000] "GET / HTTP/1.1`,
		want: "combined skip: malformed",
	},
	{
		name: "the year 9999", format: "combined",
		line: `192.0.2.7 - - [01/Mar/9999:12:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "-"`,
		want: "combined skip: malformed",
	},
	{
		name: "before 1970", format: "combined",
		line: `192.0.2.7 - - [01/Mar/1969:12:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "-"`,
		want: "combined skip: malformed",
	},
	{
		name: "NUL and invalid UTF-8",
		line: "192.0.2.7 - - [01/Mar/2026:12:00:00 +0000] \"GET /\x00\xff</script> HTTP/1.1\" 200 1 \"-\" \"-\"",
		want: "combined 12:00:00 -1ns 200 192.0.2.7 GET /\x00\xff</script>",
	},
	{
		name:   "json by fields",
		fields: []logs.Field{{Name: "time", Path: "ts"}, {Name: "duration_ms", Path: "took"}, {Name: "method", Path: "req.method"}, {Name: "path", Path: "req.url"}, {Name: "ip", Path: "req.remoteAddress"}, {Name: "status", Path: "res.statusCode"}, {Name: "header:X-Client-Id", Path: "req.headers.x-client-id"}},
		line:   `{"level":30,"ts":1772366400250,"took":15,"req":{"method":"GET","url":"/a","remoteAddress":"192.0.2.7","headers":{"x-client-id":"me"}},"res":{"statusCode":null}}`,
		want:   "json 12:00:00.25 15ms 0 192.0.2.7 GET /a client me",
	},
	{
		name:   "json, names with points",
		fields: []logs.Field{{Name: "time", Path: "@timestamp"}, {Name: "method", Path: "http.request.method"}, {Name: "path", Path: "url.path"}, {Name: "ip", Path: "source.ip"}},
		line:   `{"@timestamp":"2026-03-01T13:00:00.250+01:00","http.request.method":"GET","url.path":"/a","source.ip":"192.0.2.7"}`,
		want:   "json 12:00:00.25 -1ns 0 192.0.2.7 GET /a",
	},
}
