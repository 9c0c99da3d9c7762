package rule

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/headgate/headgate"
)

// d returns a descriptor of names and values.
func d(texts ...string) headgate.Descriptors {
	var entries headgate.Descriptors
	for i := 0; i < len(texts); i += 2 {
		entries = append(entries, headgate.DescriptorEntry{Name: texts[i], Value: texts[i+1]})
	}
	return entries
}

func TestAppendEntries(t *testing.T) {
	long := strings.Repeat("v", 129)
	sum := sha256.Sum256([]byte(long))
	digest := "sha256:" + hex.EncodeToString(sum[:16])
	for _, row := range []struct {
		entries headgate.Descriptors
		want    string
	}{
		{d("client", "a", "path", "/x y"), `descriptor:client="a" descriptor:path="/x y"`},
		{d("client", "\"\n\x00\u202e"), `descriptor:client="\"\n\x00\u202e"`},
		{d("a=b", "", "x y", "1", "", "2", "\xff", "3"), `descriptor:"a=b"="" descriptor:"x y"="1" descriptor:""="2" descriptor:"\xff"="3"`},
		{d("client", long), `descriptor:client="` + digest + `"`},
		{d(long, "a"), "descriptor:" + digest + `="a"`},
		{nil, ""},
	} {
		if got := string(PlainKeyNames().AppendEntries(nil, row.entries, 4096)); got != row.want {
			t.Errorf("got  %s\nwant %s", got, row.want)
		}
	}
	got := string(HashedKeyNames([]byte("secret")).AppendEntries([]byte("x "), d("client", "a", "path", long), 4096))
	want := "x descriptor:client=" + hashOf("secret", "descriptor:client", "a") + " descriptor:path=" + hashOf("secret", "descriptor:path", digest)
	if got != want {
		t.Errorf("hashed: got  %s\nwant %s", got, want)
	}
}

// The text has a bound, however many entries a descriptor has and however long they are.
func TestAppendEntriesIsBounded(t *testing.T) {
	var entries headgate.Descriptors
	for range 32 {
		entries = append(entries, headgate.DescriptorEntry{Name: strings.Repeat("\xff", 128), Value: strings.Repeat("\x00", 128)})
	}
	got := string(PlainKeyNames().AppendEntries(nil, entries, 2048))
	if len(got) > 2048+len(" ...(32 more)") || !strings.HasSuffix(got, " ...(31 more)") && !strings.HasSuffix(got, " ...(30 more)") {
		t.Errorf("got %d bytes, which end with %q", len(got), got[len(got)-20:])
	}
	if got := string(PlainKeyNames().AppendEntries(nil, entries[:1], 10)); got != " ...(1 more)" {
		t.Errorf("an entry beyond the bound: got %q", got)
	}
}

// An entry of a descriptor has the same name as in the key of a rule.
func TestEntriesAreNamedAsInKeys(t *testing.T) {
	for _, value := range []string{"a", "\"", strings.Repeat("v", 200)} {
		r := &Rule{Name: "product", Key: parts(t, "descriptor:client")}
		req := &headgate.Request{Descriptors: d("client", value)}
		key, _ := r.AppendKey(nil, req)
		for _, names := range []*KeyNames{PlainKeyNames(), HashedKeyNames([]byte("secret"))} {
			want := string(names.AppendKey(nil, string(key)))
			if got := string(names.AppendEntries(nil, req.Descriptors, 4096)); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	}
}

// Whatever a client sends, the text is printable, and hashes hide the value.
func FuzzAppendEntries(f *testing.F) {
	f.Add("client", "a")
	f.Add("a=b\"", "\xff\n")
	plain, hashed := PlainKeyNames(), HashedKeyNames([]byte("s"))
	f.Fuzz(func(t *testing.T, name, value string) {
		for _, names := range []*KeyNames{plain, hashed} {
			text := string(names.AppendEntries(nil, d(name, value, name, value), 4096))
			if !utf8.ValidString(text) || strings.ContainsAny(text, "\n\r\x00\x1b") || len(text) > 4200 {
				t.Errorf("%q=%q becomes %q", name, value, text)
			}
		}
	})
}
