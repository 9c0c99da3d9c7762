package replay

import (
	"bytes"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"

	"github.com/headgate/headgate/cmd/internal/lab/output"
)

// Schema returns the JSON Schema of a report.
func Schema() ([]byte, error) {
	return output.Schema("Report of headgate replay", Report{})
}

// WriteJSON writes the report as JSON. Control characters from logs are escaped.
func (r *Report) WriteJSON(w io.Writer) error {
	var b bytes.Buffer
	if err := output.WriteJSON(&b, r); err != nil {
		return err
	}
	_, err := w.Write(escapeControls(b.Bytes()))
	return err
}

// escapeControls escapes the control characters that encoding/json leaves as they are, such as DEL and those of C1.
func escapeControls(text []byte) []byte {
	if bytes.IndexFunc(text, isControl) < 0 {
		return text
	}
	var b bytes.Buffer
	for len(text) > 0 {
		c, size := utf8.DecodeRune(text)
		if isControl(c) {
			fmt.Fprintf(&b, `\u%04x`, c)
		} else {
			b.Write(text[:size])
		}
		text = text[size:]
	}
	return b.Bytes()
}

func isControl(c rune) bool { return unicode.IsControl(c) && c != '\n' }
