package httplimit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/testkit/cookiereaders"
	"github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/rule"
)

// differentCookies are fields that parsers read in different ways: rules may not read a key in them.
var differentCookies = []string{
	"session=K a1=1", "session=K a2=1", "session=K\ta1=1", `session="K" a=1`, `session="K`, `session="K"x`, `session="\113"`, `session="\K"`, `session="K""`,
	`session="a;b"`, "session=K; session=L", "session=K; Session=L", "session; session=K", "session=; session=K", `a="; session=K; b="; session=L`,
	"session[a]=K", "session=K; session[x]=L", "a=1, session=K; session=L", "session=L; a=1, session=K", "a=1,session=K", "session=L; a=x session=K",
	"session=L; a=x\tsession = K", `a="x, session=K"; session=L`, "session=K\xc2\xa0", "session=\xc2\xa0K", "session\xc2\xa0=K", "session=K; session\xc2\xa0=L",
	"session=K; \xe2\x80\x80session=L", "session=\xc3\xa9", "session=K\xff", ",session=K",
}

// sameCookies are fields that all parsers read alike, up to the common form of the value after them.
var sameCookies = [][2]string{
	{"session=K", "K"},
	{`session="K"`, "K"},
	{"session=%4b", "K"},
	{`session="%4B"`, "K"},
	{"session=%22K%22", "K"},
	{" session = K ", "K"},
	{"session\t=\tK", "K"},
	{"SESSION=K", "K"},
	{"a=b; session=K; c=d", "K"},
	{`session="K"; session=K`, "K"},
	{"session=K ; b=1", "K"},
	{"session=K%20", "K"},
	{`session="K a1"`, "K+a1"},
	{"session=K%20a1", "K+a1"},
	{"session=K+a1", "K+a1"},
	{"session=a%2bb", "a+b"},
	{"session=K,L", "K,L"},
	{"session=K=L==", "K=L=="},
	{"session=%254b", "%4b"},
	{"session=%", "%"},
	{"session=a/b|c@d{e}[f]<g>(h)?i!j#k$l&m*n^o~p:q'r`s", "a/b|c@d{e}[f]<g>(h)?i!j#k$l&m*n^o~p:q'r`s"},
	{`prefs={"a":1,"b":2}; session=K`, "K"},
	{"a=x y; session=K", "K"},
	{"a=%22; session=K", "K"},
	{"%73ession=L; session=K", "K"},
	{"a=\xc3\xa9; session=K", "K"},
	{"session=eyJhbGciOi.eyJzdWIi_-.SflK", "eyJhbGciOi.eyJzdWIi_-.SflK"},
}

// cookiePieces make further fields.
var cookiePieces = []string{
	"session=K", "session=K", "session=L", "session", "Session", "=", "K", "L", `"`, `"`, ";", "; ", " ", ",", ", ", "%4b", "%22", "%20", "%", "+", `\`, "\t", "other=1", "a=",
	"[", "]", ".", "é", "\xc2\xa0", "\xff", "$Path=/", "path=x", "&", "'", "__Host-session=K", "expires=Wed, 01 Jan 2031 00:00:00 GMT",
}

// TestCookieReaders compares what rules read with the real parsers of Django, werkzeug (Flask), http.cookies, Rack, cookie
// (Express), PHP, nginx and net/http. If two of them read different sessions in a field, the proxy refuses it. Otherwise fields
// in which a parser reads one session are one key.
func TestCookieReaders(t *testing.T) {
	t.Parallel()
	fields := slices.Clone(differentCookies)
	for _, same := range sameCookies {
		fields = append(fields, same[0])
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range race.Fewer(2500, 250) {
		field := ""
		for range 1 + random.IntN(6) {
			field += cookiePieces[random.IntN(len(cookiePieces))]
		}
		if random.IntN(2) == 0 { // A field with some cookie of the name says more.
			field = "session=" + field
		}
		fields = append(fields, field)
	}
	read := cookiereaders.Read(t, fields)
	keys, counts := map[string]map[string]string{}, map[string]int{}
	for i, field := range fields {
		judgeCookie(t, field, &read[i], keys, counts)
	}
	t.Logf("%d fields: %v", len(fields), counts)
	if counts["one key"] < len(fields)/5 || counts["refused"] < len(fields)/5 {
		t.Errorf("too few fields for a comparison: %v", counts)
	}
	for _, field := range differentCookies {
		if (&cookies{headers{"Cookie": {field}}}).read("session").single {
			t.Errorf("%q is one cookie", field)
		}
	}
	for _, c := range sameCookies {
		if got := (&cookies{headers{"Cookie": {c[0]}}}).read("session"); !got.single || !got.plain || got.value != c[1] {
			t.Errorf("%q is read as %+v, want %q", c[0], got, c[1])
		}
	}
}

// judgeCookie compares one field. keys has the key of each session that a parser has read.
func judgeCookie(t *testing.T, field string, values *cookiereaders.Values, keys map[string]map[string]string, counts map[string]int) {
	t.Helper()
	rules := (&cookies{headers{"Cookie": {field}}}).read("session")
	found := map[string]bool{}
	for i, v := range values {
		if !v.Found || v.Value == "" {
			continue
		}
		found[v.Value] = true
		name := cookiereaders.Name(i)
		if !rules.single {
			continue
		}
		if decoded := strings.Trim(strings.ReplaceAll(v.Value, " ", "+"), "\" \t+"); !rules.found || rule.CookieForm(v.Value) != rules.value && decoded != rules.value {
			t.Errorf("%q: %s reads %q, the rules %+v", field, name, v.Value, rules)
		}
		session := fmt.Sprintf("%s %q", name, v.Value)
		if keys[session] == nil {
			keys[session] = map[string]string{}
		}
		for key, other := range keys[session] {
			if key != rules.value {
				t.Errorf("%s reads one session in %q and in %q, and the rules count %q and %q", name, field, other, rules.value, key)
			}
		}
		keys[session][rules.value] = field
	}
	switch {
	case !rules.single && len(found) == 1:
		counts["refused, though read alike"]++
		fallthrough
	case !rules.single:
		counts["refused"]++
	case rules.found && rules.value != "":
		counts["one key"]++
	default:
		counts["no cookie"]++
	}
}

// TestCookieNames checks the names that PHP reads as another name: it turns dots, spaces and brackets into "_".
func TestCookieNames(t *testing.T) {
	for _, c := range []struct {
		field, name, want string
		found, single     bool
	}{
		{"my.session=K", "my_session", "K", true, true},
		{"my session=K", "my_session", "K", true, true},
		{"my[session=K", "my_session", "K", true, true},
		{"my_session=K; my.session=L", "my_session", "K", true, false},
		{"my.session=L; my_session=K", "my_session", "L", true, false},
		{"my_session[a]=K", "my_session", "", false, false},
		{"session =K", "session_", "K", true, true},
		{"connect_sid=L; connect.sid=K", "connect.sid", "K", true, true}, // Express reads the name as it is.
		{"my-session=L; my_session=K", "my_session", "K", true, true},
		{"mysession=L", "my_session", "", false, true},
	} {
		got := (&cookies{headers{"Cookie": {c.field}}}).read(c.name)
		if got.value != c.want || got.found != c.found || got.single != c.single {
			t.Errorf("%q, %s: got %+v, want %q, %v, %v", c.field, c.name, got, c.want, c.found, c.single)
		}
	}
}

// TestUnclearCookieIsNoKey checks that the middleware, which refuses no cookie, counts one that parsers read in different ways
// under the shared key.
func TestUnclearCookieIsNoKey(t *testing.T) {
	for _, field := range []string{"session=K a1=1", "session=K\ta1=1", `session="K" a=1`, `session="K`, "session=K\xc2\xa0", `session="\113"`} {
		if value, found := (&cookies{headers{"Cookie": {field}}}).Lookup("session"); found {
			t.Errorf("%q has the key %q", field, value)
		}
	}
}

// BenchmarkCookieOfBlanks shows that the search is linear: clients choose the bytes of a field.
func BenchmarkCookieOfBlanks(b *testing.B) {
	c := &cookies{headers{"Cookie": {"a=" + strings.Repeat(" ,\t", 10_000) + strings.Repeat("session ", 10_000)}}}
	b.ReportAllocs()
	for b.Loop() {
		c.read("session")
	}
}

func BenchmarkCookie(b *testing.B) {
	c := &cookies{headers{"Cookie": {"_ga=GA1.2.1234567890.1700000000; lang=en; prefs=compact; session=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0"}}}
	b.ReportAllocs()
	for b.Loop() {
		c.read("session")
	}
}
