// Package logs reads access logs: the combined and the common format, JSON by the names of its fields, and the logs of nginx, HAProxy,
// Apache, Envoy, Caddy, Traefik, Varnish, squid, lighttpd and Headgate. Start with Open.
//
// # Arrival
//
// A limiter decides a request at the end of its head. A log has another moment: the first byte, the end of the request line, or the end of
// the answer. Kind.Moment says which moment Line.Arrival is, and Kind.Hides what logs of the server do not tell.
//
// # Attributes
//
// Lines of text may end in attributes, which are name=value or name="value". The names of times are those of each server's own settings,
// and a key part has its name in the configuration:
//
//	192.0.2.7 - - [01/Mar/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 12 "-" "-" msec=1772366400.017 request_time=0.005 header:X-Id="me"
//
// HowToLog has the setting that writes them.
//
// # Bounds
//
// A line has at most MaxLine bytes; longer lines are read past, and malformed. A Reader keeps one line, also of a compressed file, and the
// values of at most 256 fields. It allocates nothing for a line of usual form.
package logs
