// Package accesslog writes a line for each answered request, as JSON or in the combined
// format of Apache and nginx. Start with Open.
//
// A request costs only the formatting of its line: a few hundred nanoseconds, without
// allocation. The line goes into a bounded buffer, which another goroutine writes within a
// second. A slow disk or reader delays no request. Lines beyond the buffer are dropped,
// counted, and reported in the program's log.
//
// # Formats
//
// JSON has one object per line. Fields without a value are omitted. Durations are in
// seconds. time is the arrival of the request, in UTC:
//
//	{"time":"2026-03-01T12:00:00.123456Z","remote_ip":"192.0.2.7","request_id":"…","method":"GET",
//	"host":"api.example.com","uri":"/v1/product?id=7","proto":"HTTP/2.0","status":429,"bytes":212,
//	"duration":0.000341,"user_agent":"curl/8","referer":"…","upstream_status":200,"upstream_duration":0.012,
//	"verdict":"deny","reason":"over_limit","rule":"product","key":"ip=…","decision":"eu-1/…","tls":"TLS 1.3","aborted":true}
//
// Lines also have user_ip, region and cost, if the rules or the log need them. identity_hash has the values that log.identity names, as
// hashes, and identity those in clear. A part that the request lacks is null:
//
//	"user_ip":"198.51.100.7","region":"NL","cost":5,"identity":{"header:X-Plan":"gold"},"identity_hash":{"jwt:sub":null}
//
// If rules in shadow match, shadow_verdict, shadow_reason, shadow_rule and shadow_key have their
// decision. The request did not get it: verdict has the decision that it got.
//
// The combined format has only its standard fields:
//
//	192.0.2.7 - - [01/Mar/2026:12:00:00 +0000] "GET /v1/product?id=7 HTTP/2.0" 429 212 "-" "curl/8"
//
// # Text from clients
//
// Text from clients is escaped, so that it cannot end a line or a field, or control a
// terminal. In the combined format, quotes and backslashes get a backslash, and bytes
// outside printable ASCII become \xHH. In JSON, characters become \uHHHH, and invalid UTF-8
// becomes U+FFFD. Long values are truncated and end in "...". No line exceeds MaxLine bytes.
package accesslog
