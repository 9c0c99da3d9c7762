package terminal

import "testing"

func TestPrintable(t *testing.T) {
	for name, want := range map[string]string{
		"home-loan": "home-loan", "": "", "a b": "a b", "café": "café", "'": "'", "a\nb\tc": `a\nb\tc`,
		"\x1b[2J": `\x1b[2J`, "\x00": `\x00`, "\xff\xfe": `\xff\xfe`, "\ufffd": "\ufffd", "\u202egnp": `\u202egnp`, "\u00a0": `\u00a0`,
		"a\ufe0f": `a\ufe0f`, "\u3164": `\u3164`, "e\u0301": "e\u0301", "漢字": "漢字",
	} {
		if got := Printable(name); got != want {
			t.Errorf("%q is printed as %q, want %q", name, got, want)
		}
	}
}

// TestCut checks that wide characters count as two columns and combining marks as none.
func TestCut(t *testing.T) {
	for _, c := range []struct {
		line    string
		columns int
		want    string
	}{
		{"größer", 3, "grö"},
		{"ab", 3, "ab"},
		{"ab", 2, "ab"},
		{"ab", 0, "ab"},
		{"漢字", 4, "漢字"},
		{"漢字", 3, "漢"},
		{"漢字", 1, ""},
		{"ｈ！", 3, "ｈ"},
		{"🌾🌾", 2, "🌾"},
		{"e\u0301e\u0301", 1, "e\u0301"},
		{"👍🏽x", 2, "👍🏽"},
		{"👍🏽x", 1, ""},
		{"🇩🇪🇫🇷", 3, "🇩🇪"},
		{"각x", 2, "각"},
	} {
		if got := Cut(c.line, c.columns); got != c.want {
			t.Errorf("%q in %d columns is %q, want %q", c.line, c.columns, got, c.want)
		}
	}
}

// TestShorten checks that a long name keeps its beginning and its end, and fits.
func TestShorten(t *testing.T) {
	for _, c := range []struct {
		name    string
		columns int
		want    string
	}{
		{"abcdef", 6, "abcdef"},
		{"abcdefg", 6, "abc…fg"},
		{"abcdefgh", 5, "ab…gh"},
		{"漢字漢字", 7, "漢…漢字"},
		{"漢字漢字", 6, "漢…字"},
		{"abcde\u0301f", 4, "ab…f"},
		{"abcdefe\u0301", 4, "ab…e\u0301"},
		{"abc", 2, "a…"},
		{"abc", 1, "…"},
	} {
		got := Shorten(c.name, c.columns)
		if got != c.want || Width().StringWidth(got) > c.columns {
			t.Errorf("%q in %d columns is %q, want %q", c.name, c.columns, got, c.want)
		}
	}
}
