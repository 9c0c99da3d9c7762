package jwt_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/headgate/headgate/rule/jwt"
)

// FuzzVerify checks that only valid tokens are accepted. A valid token with any change,
// and any other text, is refused.
func FuzzVerify(f *testing.F) {
	tokens := []string{""}
	var file []byte
	for _, a := range algorithms() {
		if part := pemOf(a.key.Public()); !bytes.Contains(file, part) {
			file = append(file, part...)
		}
		tokens = append(tokens, issue(f, a, good))
	}
	for which, token := range tokens {
		f.Add(byte(which), uint16(0), byte(0), "")
		for at := which; at < len(token); at += 29 {
			f.Add(byte(which), uint16(at), byte(1), "A")
			f.Add(byte(which), uint16(at), byte(0), "\n")
			f.Add(byte(which), uint16(at), byte(9), "")
		}
	}
	f.Add(byte(0), uint16(0), byte(0), "eyJhbGciOiJub25lIn0."+encode([]byte(good))+".")
	v := verifier(f, file, jwt.Config{MaxCached: 64})
	f.Fuzz(func(t *testing.T, which byte, at uint16, cut byte, there string) {
		token := tokens[int(which)%len(tokens)]
		from := int(at) % (len(token) + 1)
		to := min(from+int(cut), len(token))
		text := token[:from] + there + token[to:]
		want := text != "" && slices.Contains(tokens, text)
		if got := accepted(t, v, text); got != want {
			t.Errorf("%q: accepted = %v, want %v", text, got, want)
		}
	})
}

// FuzzClaims compares signed claims with a map that Go's JSON decoder fills. A token is
// accepted exactly when the map is valid, and its claims equal the map.
func FuzzClaims(f *testing.F) {
	a := algorithms()[9]
	v := verifier(f, pemOf(a.key.Public()), jwt.Config{MaxCached: -1})
	for _, claims := range []string{
		good, `{}`, `null`, `[]`, `{"exp":1800003600,"nbf":1800000000.1}`, `{"exp":1800003600,"iat":null}`, `{"exp":"1800003600"}`,
		`{"exp":1.8e10,"a":"é\ud83d\ude00","b":[1,{"c":2}],"":true,"d":-0.10,"e":"\ufffd"}`, `{"exp":1e400,"exp":1}`, `{"exp":1800003600,"sub":"a","sub":"b"}`,
	} {
		f.Add(claims)
	}
	f.Fuzz(func(t *testing.T, claims string) {
		values, ok := v.Verify(issue(t, a, claims))
		m, isMap := mapOf(claims)
		if !ok {
			if canonical, err := json.Marshal(m); isMap && err == nil && goodDates(m) && len(m) <= 100 && len(canonical) < 5000 {
				if _, ok := v.Verify(issue(t, a, string(canonical))); !ok {
					t.Errorf("%s was refused", canonical)
				}
			}
			return
		}
		if !isMap || !goodDates(m) {
			t.Fatalf("%q was accepted", claims)
		}
		for name, value := range m {
			want := ""
			switch value := value.(type) {
			case string:
				if !strings.ContainsRune(value, utf8.RuneError) {
					want = value
					for _, word := range []string{"number:", "boolean:", "string:"} {
						if strings.HasPrefix(value, word) {
							want = "string:" + value
						}
					}
				}
			case bool:
				want = "boolean:" + strconv.FormatBool(value)
			case json.Number:
				want = "number:" + value.String()
			}
			if got, found := values.Lookup(name); got != want || found != (want != "") {
				t.Errorf("%q: claim %q: got %q, %v, want %q", claims, name, got, found, want)
			}
		}
	})
}

func mapOf(claims string) (m map[string]any, ok bool) {
	d := json.NewDecoder(bytes.NewReader([]byte(claims)))
	d.UseNumber()
	if err := d.Decode(&m); err != nil || m == nil {
		return nil, false
	}
	return m, !d.More() && json.Valid([]byte(claims))
}

// goodDates checks exp, nbf and iat at the time today, without leeway.
func goodDates(m map[string]any) bool {
	for name, good := range map[string]func(at float64) bool{
		"exp": func(at float64) bool { return today < at },
		"nbf": func(at float64) bool { return today >= at },
		"iat": func(at float64) bool { return today >= at },
	} {
		value, there := m[name]
		if !there && name != "exp" {
			continue
		}
		number, isNumber := value.(json.Number)
		if !isNumber {
			return false
		}
		at, _ := strconv.ParseFloat(number.String(), 64) // a number out of range becomes infinite
		if !good(at) {
			return false
		}
	}
	return true
}
