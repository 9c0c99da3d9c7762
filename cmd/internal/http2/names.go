package http2

import (
	"net/http"
	"strings"
)

// commonNames are frequent names of fields, in canonical form, with their index in the static table of HPACK
// (RFC 7541, appendix A), or 0.
var commonNames = map[string]int{
	"Accept": 19, "Accept-Charset": 15, "Accept-Encoding": 16, "Accept-Language": 17, "Accept-Ranges": 18,
	"Access-Control-Allow-Origin": 20, "Age": 21, "Allow": 22, "Authorization": 23, "Cache-Control": 24, "Content-Disposition": 25,
	"Content-Encoding": 26, "Content-Language": 27, "Content-Length": 28, "Content-Location": 29, "Content-Range": 30,
	"Content-Type": 31, "Cookie": 32, "Date": 33, "Etag": 34, "Expect": 35, "Expires": 36, "From": 37, "Host": 38,
	"If-Match": 39, "If-Modified-Since": 40, "If-None-Match": 41, "If-Range": 42, "If-Unmodified-Since": 43, "Last-Modified": 44,
	"Link": 45, "Location": 46, "Max-Forwards": 47, "Proxy-Authenticate": 48, "Proxy-Authorization": 49, "Range": 50, "Referer": 51,
	"Refresh": 52, "Retry-After": 53, "Server": 54, "Set-Cookie": 55, "Strict-Transport-Security": 56, "Transfer-Encoding": 57,
	"User-Agent": 58, "Vary": 59, "Via": 60, "Www-Authenticate": 61,

	"Access-Control-Allow-Credentials": 0, "Access-Control-Allow-Headers": 0, "Access-Control-Allow-Methods": 0, "Alt-Svc": 0,
	"Content-Security-Policy": 0, "Dnt": 0, "Grpc-Accept-Encoding": 0, "Grpc-Encoding": 0, "Grpc-Message": 0, "Grpc-Status": 0,
	"Grpc-Timeout": 0, "Origin": 0, "Permissions-Policy": 0, "Pragma": 0, "Priority": 0, "Ratelimit": 0, "Ratelimit-Policy": 0,
	"Referrer-Policy": 0, "Sec-Ch-Ua": 0, "Sec-Ch-Ua-Mobile": 0, "Sec-Ch-Ua-Platform": 0, "Sec-Fetch-Dest": 0, "Sec-Fetch-Mode": 0,
	"Sec-Fetch-Site": 0, "Sec-Fetch-User": 0, "Te": 0, "Trailer": 0, "Upgrade-Insecure-Requests": 0, "X-Api-Key": 0,
	"X-Content-Type-Options": 0, "X-Forwarded-For": 0, "X-Forwarded-Host": 0, "X-Forwarded-Proto": 0, "X-Frame-Options": 0,
	"X-Ratelimit-Limit": 0, "X-Ratelimit-Remaining": 0, "X-Ratelimit-Reset": 0, "X-Request-Id": 0, "X-Xss-Protection": 0,
}

// canonicalTable gives the canonical form of the common names on the wire.
var canonicalTable = func() map[string]string {
	table := make(map[string]string, len(commonNames))
	for name := range commonNames {
		table[strings.ToLower(name)] = name
	}
	return table
}()

// encodedTable gives the start of a field for each common name: a literal that no table keeps (RFC 7541, section 6.2.2).
var encodedTable = func() map[string]string {
	table := make(map[string]string, len(commonNames))
	for name, index := range commonNames {
		if index == 0 {
			table[name] = string(appendString([]byte{0}, strings.ToLower(name)))
		} else {
			table[name] = string(appendInt(nil, 0, 4, uint64(index)))
		}
	}
	return table
}()

// Bounds of the names that a connection remembers.
const (
	mostNames     = 64
	mostNameBytes = 64
)

// canonical returns the canonical form of a name on the wire. Only the reader calls it.
func (c *conn) canonical(name string) string {
	if known, ok := canonicalTable[name]; ok {
		return known
	}
	if known, ok := c.names[name]; ok {
		return known
	}
	form := http.CanonicalHeaderKey(name)
	if len(c.names) < mostNames && len(name) <= mostNameBytes {
		if c.names == nil {
			c.names = map[string]string{}
		}
		c.names[name] = form
	}
	return form
}

// appendInt appends a number with a prefix of some bits (RFC 7541, section 5.1). first has the bits before the prefix.
func appendInt(b []byte, first byte, bits int, n uint64) []byte {
	most := uint64(1)<<bits - 1
	if n < most {
		return append(b, first|byte(n))
	}
	b = append(b, first|byte(most))
	for n -= most; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

// appendString appends a string without Huffman coding, which would cost more processor time than it saves bytes.
func appendString(b []byte, s string) []byte {
	return append(appendInt(b, 0, 7, uint64(len(s))), s...)
}

// appendField appends a field, which has a name in canonical form.
func appendField(b []byte, name, value string) []byte {
	if start, ok := encodedTable[name]; ok {
		b = append(b, start...)
	} else {
		b = appendInt(append(b, 0), 0, 7, uint64(len(name)))
		for i := range len(name) {
			c := name[i]
			if 'A' <= c && c <= 'Z' {
				c |= 0x20
			}
			b = append(b, c)
		}
	}
	return appendString(b, value)
}

// appendStatus appends the status of a response.
func appendStatus(b []byte, status int) []byte {
	const indexed, name = 0x80, 8 // of the static table
	switch status {
	case http.StatusOK:
		return append(b, indexed|8)
	case http.StatusNoContent:
		return append(b, indexed|9)
	case http.StatusPartialContent:
		return append(b, indexed|10)
	case http.StatusNotModified:
		return append(b, indexed|11)
	case http.StatusBadRequest:
		return append(b, indexed|12)
	case http.StatusNotFound:
		return append(b, indexed|13)
	case http.StatusInternalServerError:
		return append(b, indexed|14)
	}
	return append(b, name, 3, byte('0'+status/100%10), byte('0'+status/10%10), byte('0'+status%10))
}
