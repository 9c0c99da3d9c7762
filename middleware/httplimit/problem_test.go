package httplimit

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzAppendJSON checks that any text gives valid JSON.
func FuzzAppendJSON(f *testing.F) {
	for _, seed := range []string{"product", `a"b\c`, "\x00\x1f\x7f", "é\u2028", "\xff\xfe"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var got string
		if err := json.Unmarshal(appendJSON(nil, text), &got); err != nil {
			t.Fatalf("decoding %q failed: %v", text, err)
		}
		if want := strings.ToValidUTF8(text, "\ufffd"); strings.Count(text, "\xff") == 0 && got != want && !strings.Contains(got, "\ufffd") {
			t.Errorf("%q was decoded as %q", text, got)
		}
	})
}
