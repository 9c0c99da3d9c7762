// Package accesslog writes a line for each request that was answered, as JSON or
// in the combined format of Apache and nginx. Begin with Open.
//
// A request pays for its line and no more: the line is made in its goroutine, a
// few hundred nanoseconds without allocation, and put into a bounded buffer, which
// another goroutine writes out within a second. A disk or a reader that does not
// keep up delays no request: lines that find no room are dropped, counted, and
// told of in the program's log.
//
// # Formats
//
// JSON has an object a line. Fields without a value are left out; durations are in
// seconds; time is when the request arrived, in UTC:
//
//	{"time":"2026-03-01T12:00:00.123456Z","remote_ip":"192.0.2.7","request_id":"…","method":"GET",
//	"host":"api.example.com","uri":"/v1/product?id=7","proto":"HTTP/2.0","status":429,"bytes":212,
//	"duration":0.000341,"user_agent":"curl/8","referer":"…","upstream_status":200,"upstream_duration":0.012,
//	"verdict":"deny","reason":"over_limit","rule":"product","key":"ip=…","tls":"TLS 1.3","aborted":true}
//
// The combined format has what its readers expect, and nothing else:
//
//	192.0.2.7 - - [01/Mar/2026:12:00:00 +0000] "GET /v1/product?id=7 HTTP/2.0" 429 212 "-" "curl/8"
//
// # What clients send
//
// It is escaped, so that it can neither end a line nor a field, nor steer a
// terminal: in the combined format quotes and backslashes by a backslash and all
// that is not printable ASCII as \xHH; in JSON as \uHHHH, and what is no UTF-8 as
// U+FFFD. Long values are cut and end in "...". No line has more than MaxLine bytes.
package accesslog
