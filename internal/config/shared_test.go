package config

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestStoreAddresses checks the meaning of an address, and its form in output.
func TestStoreAddresses(t *testing.T) {
	for text, want := range map[string]struct {
		store SharedStore
		shown string
	}{
		"redis://h":  {SharedStore{Kind: KindRedis, Addresses: []string{"h:6379"}}, "redis://h:6379"},
		"redis://h/": {SharedStore{Kind: KindRedis, Addresses: []string{"h:6379"}}, "redis://h:6379"},
		"rediss://app:s%40%2f%25:c@[2001:DB8::1]:1/15": {
			SharedStore{Kind: KindRedis, TLS: true, Addresses: []string{"[2001:db8::1]:1"}, User: "app", Password: "s@/%:c", Database: 15},
			"rediss://app:***@[2001:db8::1]:1/15",
		},
		"redis+cluster://:p@a,b:1,10.0.0.1": {
			SharedStore{Kind: KindRedisCluster, Addresses: []string{"a:6379", "b:1", "10.0.0.1:6379"}, Password: "p"},
			"redis+cluster://:***@a:6379,b:1,10.0.0.1:6379",
		},
		"rediss+cluster://a/": {SharedStore{Kind: KindRedisCluster, TLS: true, Addresses: []string{"a:6379"}}, "rediss+cluster://a:6379"},
		"redis+sentinel://a,b:1/m.a-s_ter1": {
			SharedStore{Kind: KindRedisSentinel, Addresses: []string{"a:26379", "b:1"}, Master: "m.a-s_ter1"}, "redis+sentinel://a:26379,b:1/m.a-s_ter1",
		},
		"rediss+sentinel://ap%20p:p@a/m/3": {
			SharedStore{Kind: KindRedisSentinel, TLS: true, Addresses: []string{"a:26379"}, Master: "m", Database: 3, User: "ap p", Password: "p"},
			"rediss+sentinel://ap%20p:***@a:26379/m/3",
		},
		"redis+unix:///run/a%20b%40%3F.sock": {
			SharedStore{Kind: KindRedis, Addresses: []string{"/run/a b@?.sock"}}, "redis+unix:///run/a%20b%40%3F.sock",
		},
		"redis+unix://app:p@/run/redis.sock": {
			SharedStore{Kind: KindRedis, Addresses: []string{"/run/redis.sock"}, User: "app", Password: "p"}, "redis+unix://app:***@/run/redis.sock",
		},
		"memcached+srv://_Memcached._tcp.example.com.": {
			SharedStore{Kind: KindMemcached, Addresses: []string{"_memcached._tcp.example.com"}}, "memcached+srv://_memcached._tcp.example.com",
		},
		"memcacheds+srv://a.example": {
			SharedStore{Kind: KindMemcached, TLS: true, Addresses: []string{"a.example"}}, "memcacheds+srv://a.example",
		},
		"memcacheds://a":    {SharedStore{Kind: KindMemcached, TLS: true, Addresses: []string{"a:11211"}}, "memcacheds://a:11211"},
		"memcached://a,b:1": {SharedStore{Kind: KindMemcached, Addresses: []string{"a:11211", "b:1"}}, "memcached://a:11211,b:1"},
	} {
		c := parsed(t, fmt.Sprintf("version: 1\nrules: []\nstore: %q\n", text))
		want.store.Slots, want.store.DialTimeout, want.store.DenyCache = 16384, time.Second, time.Second
		want.store.Breaker = Breaker{Failures: 5, Probe: 100 * time.Millisecond, MaxProbe: 2 * time.Second}
		if !reflect.DeepEqual(*c.Shared, want.store) {
			t.Errorf("%s: got %+v, want %+v", text, *c.Shared, want.store)
		}
		if c.Store != want.shown || c.Shared.String() != want.shown {
			t.Errorf("%s: printed as %s and %s, want %s", text, c.Store, c.Shared, want.shown)
		}
	}
}

// TestStoreAddressAgain: the printed form of an address without a password is a valid address.
func TestStoreAddressAgain(t *testing.T) {
	for _, file := range testdata(t, "ok") {
		c := parsed(t, string(read(t, file)))
		if c.Shared == nil {
			continue
		}
		shown := *c.Shared
		shown.User, shown.Password = "", ""
		again, bad := parseStore(shown.String())
		if bad != nil || again.String() != shown.String() {
			t.Errorf("%s: %s becomes %v, %+v", file, shown.String(), again, bad)
		}
	}
}

// TestSecretsAreNotShown prints, logs and encodes secrets in all common ways.
func TestSecretsAreNotShown(t *testing.T) {
	c := parsed(t, "version: 1\nrules: []\nstore: redis+sentinel://app:hidden@h/m\nstore_sentinel_password: hidden\n")
	if c.Shared.Password.Reveal() != "hidden" {
		t.Fatal("Reveal does not return the password")
	}
	var logged strings.Builder
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("a", "store", c.Shared, "password", c.Shared.Password, "config", *c)
	encoded, err := json.Marshal(map[string]any{"store": *c.Shared})
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{logged.String(), string(encoded)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		texts = append(texts, fmt.Sprintf(verb, c.Shared.Password), fmt.Sprintf(verb, *c.Shared), fmt.Sprintf(verb, c), fmt.Sprintf(verb, *c))
	}
	for _, text := range texts {
		for _, hidden := range []string{"hidden", fmt.Sprintf("%x", "hidden"), "104 105"} {
			if strings.Contains(text, hidden) {
				t.Errorf("the output contains the password: %s", text)
			}
		}
	}
	if got := fmt.Sprintf("%+v", SharedStore{}.Password); got != "" {
		t.Errorf("an empty Secret is printed as %q, want an empty text", got)
	}
}

// TestPasswordsAreInNoFault breaks addresses in many ways. No fault and no excerpt may contain
// the password, for the file and for the environment.
func TestPasswordsAreInNoFault(t *testing.T) {
	draw := rand.New(rand.NewPCG(2, 71))
	const secret = "qxzjkv" // No message has two of these letters in a row.
	faults := 0
	all := draws(3000)
	for range all {
		password := secret + []string{"", "/", "?", "#", "%", "%zz", " ", "@", ":", ",", "é", "[", "%2f"}[draw.IntN(13)] + secret
		scheme := []string{"redis", "rediss+cluster", "redis+sentinel", "memcached", "redsi", "", "http"}[draw.IntN(7)]
		text := scheme + []string{"://", ":/", ":", "//", ""}[max(0, draw.IntN(9)-4)]
		text += []string{"", "app", "a b"}[draw.IntN(3)] + []string{":", ""}[draw.IntN(2)] + password + "@"
		text += []string{"h", "h:0", "h,h", "", "h1,h2:99999", "[::1", "h!"}[draw.IntN(7)] + []string{"", "/1", "/x", "/m/x", "?a=b", "#"}[draw.IntN(6)]
		other := []string{"", "breaker: 5\n", "redis_slots: 0\n", "store_password_file: a\n", "fallback: local\n"}[draw.IntN(5)]
		c, err := Parse("headgate.yaml", fmt.Appendf(nil, "{version: 1, store: %q, rules: 5, quota: 1, breaker: 5, prefetch: x}\n", text))
		checkHidden(t, c, err, secret, &faults)
		c, err = Parse("headgate.yaml", fmt.Appendf(nil, "version: 1\nstore: %q # a\n%srules: []\n", text, other))
		checkHidden(t, c, err, secret, &faults)
		c, err = parse("headgate.yaml", []byte("version: 1\nrules: []\n"+other), func(name string) (string, bool) {
			return text, name == "HEADGATE_STORE"
		})
		checkHidden(t, c, err, secret, &faults)
	}
	if faults < all*5/3 {
		t.Errorf("only %d of the addresses are faults, want more", faults)
	}
}

func checkHidden(t *testing.T, c *Config, err error, secret string, faults *int) {
	t.Helper()
	var b strings.Builder
	if err != nil {
		*faults++
		b.WriteString(err.Error())
	} else {
		if err := c.WriteSummary(&b); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%+v", c)
	}
	if strings.Contains(b.String(), secret) {
		t.Fatalf("a fault contains the password:\n%s", b.String())
	}
}

// FuzzStoreAddress checks that no address makes the parser panic. The printed form of a valid
// address must have the same meaning, without the password. A fault must point into the address.
func FuzzStoreAddress(f *testing.F) {
	for _, form := range storeFormTable[:] {
		f.Add(form.example)
		f.Add(form.scheme + "://app:s%40t@h1:1,[::1]:2,10.0.0.1/a/1?b#c")
	}
	f.Add("memcached+srv://a..")
	f.Add("redis://.a")
	f.Fuzz(func(t *testing.T, text string) {
		s, bad := parseStore(text)
		if bad != nil {
			if bad.problem == "" || bad.fix == "" || bad.offset < 0 || bad.offset > len(text) {
				t.Errorf("%q: %+v", text, bad)
			}
			return
		}
		shown := s.String()
		if _, err := url.Parse(strings.ReplaceAll(shown, ",", "-")); len(s.Addresses) == 1 && err != nil {
			t.Errorf("%q is shown as %s: %v", text, shown, err)
		}
		again, bad := parseStore(shown)
		if bad != nil {
			t.Fatalf("%q is shown as %s: %+v", text, shown, bad)
		}
		if s.Password != "" && again.Password != secretText {
			t.Errorf("%q is shown as %s", text, shown)
		}
		if again.Password = s.Password; !reflect.DeepEqual(s, again) {
			t.Errorf("%q is shown as %s: %+v, %+v", text, shown, s, again)
		}
	})
}
