package usage_test

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"strings"

	"github.com/headgate/headgate/internal/usage"
)

// wrap writes a document as a part of a body of a format.
func (r source) wrap(f usage.Format, text string) []byte {
	switch f {
	case usage.Lines:
		return []byte(text + r.pick("\n", "\r\n", "\n\n"))
	case usage.Events:
		return []byte(r.event(text))
	case usage.Frames:
		if r.IntN(2) == 0 {
			text = `{"bytes":"` + base64.StdEncoding.EncodeToString([]byte(text)) + `","p":"abc\"{"}`
		}
		return frameOf(text)
	default:
		return []byte(text + r.pick("", " ", "\n"))
	}
}

// event writes an event, with noise around it.
func (r source) event(text string) string {
	end := r.pick("\n", "\r\n", "\r")
	var b strings.Builder
	for range r.IntN(3) {
		b.WriteString(r.pick(": comment", "event: x", "id: 1", "retry: 5", "database: {\"n\":7}", "dat", "data2: {\"n\":7}", "", ":") + end)
	}
	lines := strings.Split(text, " ") // only blanks between tokens, and in long texts, which no field reads
	if strings.Contains(text, "long text") || r.IntN(2) == 0 {
		lines = []string{text}
	}
	for i, line := range lines {
		if i > 0 {
			b.WriteString(end)
		}
		b.WriteString("data:" + r.pick("", " ") + line)
	}
	b.WriteString(end + end)
	if r.IntN(5) == 0 {
		b.WriteString("data: [DONE]" + end + end)
	}
	return b.String()
}

// frameOf writes a frame of an AWS event stream.
func frameOf(payload string) []byte {
	headers := []byte("\x0b:event-type\x07\x00\x05chunk")
	b := binary.BigEndian.AppendUint32(nil, uint32(12+len(headers)+len(payload)+4))
	b = binary.BigEndian.AppendUint32(b, uint32(len(headers)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, headers...), payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}
