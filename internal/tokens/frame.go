package tokens

import (
	"encoding/binary"
	"hash/crc32"
	"unicode/utf8"
)

// appendException appends a frame of an AWS event stream that ends it with a throttling exception.
func appendException(dst []byte, message string) []byte {
	from := len(dst)
	dst = append(dst, make([]byte, 12)...) // the lengths and their checksum
	dst = appendHeader(dst, ":exception-type", "throttlingException")
	dst = appendHeader(dst, ":content-type", "application/json")
	dst = appendHeader(dst, ":message-type", "exception")
	headers := len(dst) - from - 12
	dst = append(dst, `{"message":`...)
	dst = append(appendJSON(dst, message), '}')
	frame := dst[from:]
	binary.BigEndian.PutUint32(frame, uint32(len(frame)+4))
	binary.BigEndian.PutUint32(frame[4:], uint32(headers))
	binary.BigEndian.PutUint32(frame[8:], crc32.ChecksumIEEE(frame[:8]))
	return binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(frame))
}

// appendHeader appends a header of a frame with a string.
func appendHeader(dst []byte, name, value string) []byte {
	const isString = 7
	dst = append(dst, byte(len(name)))
	dst = append(dst, name...)
	dst = append(dst, isString, 0, byte(len(value)))
	return append(dst, value...)
}

// appendJSON appends a string of JSON on one line.
func appendJSON(dst []byte, text string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < 0x20 || r == 0x7f || r == '<' || r == '>' || r == '&' || r == '\u2028' || r == '\u2029':
			dst = append(dst, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}
