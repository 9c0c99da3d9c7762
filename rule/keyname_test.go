package rule

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/headgate/headgate"
)

// hashOf computes the hash of a value by its definition.
func hashOf(secret, part, value string) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(part + "=" + value))
	return hex.EncodeToString(h.Sum(nil))[:32]
}

func TestKeyNames(t *testing.T) {
	long := strings.Repeat("k", 200)
	sum := sha256.Sum256([]byte(long))
	digest := "sha256:" + hex.EncodeToString(sum[:16])
	req := &headgate.Request{
		Method: "GET", Path: "/a b", IP: addr("192.0.2.1"), XFFIP: addr("2001:db8:1:2:3::4"),
		Header: sent{"X-Client-Id": "me \"x\"\n", "X-Long": long},
	}
	for _, c := range []struct {
		parts  []string
		plain  string
		hashed []string // part and value alternate, for each hashed value
	}{
		{[]string{"all"}, "all", nil},
		{[]string{"header:X-Client-Id"}, `header:X-Client-Id="me \"x\"\n"`, []string{"header:X-Client-Id", "me \"x\"\n"}},
		{[]string{"ip", "path"}, `ip=192.0.2.1 path="/a b"`, []string{"ip", "192.0.2.1", "path", "/a b"}},
		{[]string{"xff_ip"}, `xff_ip=2001:db8:1:2::/64`, []string{"xff_ip", "2001:db8:1:2::/64"}},
		{[]string{"ip/24", "xff_ip/56"}, `ip/24=192.0.2.0/24 xff_ip/56=2001:db8:1::/56`, []string{"ip/24", "192.0.2.0/24", "xff_ip/56", "2001:db8:1::/56"}},
		{[]string{"xff_ip/128"}, `xff_ip/128=2001:db8:1:2:3::4/128`, []string{"xff_ip/128", "2001:db8:1:2:3::4/128"}},
		{[]string{"header:X-Long", "header:X-None", "region"}, `header:X-Long="` + digest + `" header:X-None=(missing) region=(unknown)`, nil},
	} {
		r := &Rule{Name: "product", Key: parts(t, c.parts...)}
		key, _ := r.AppendKey(nil, req)
		if got := string(PlainKeyNames().AppendKey(nil, string(key))); got != c.plain {
			t.Errorf("plain: %s\nwant   %s", got, c.plain)
		}
		if c.hashed == nil {
			continue
		}
		var want []string
		for i := 0; i < len(c.hashed); i += 2 {
			want = append(want, c.hashed[i]+"="+hashOf("secret", c.hashed[i], c.hashed[i+1]))
		}
		got := string(HashedKeyNames([]byte("secret")).AppendKey([]byte("key: "), string(key)))
		if long := strings.Repeat("s", 65); len(c.parts) == 1 {
			want := "key: " + c.hashed[0] + "=" + hashOf(long, c.hashed[0], c.hashed[1])
			if got := string(HashedKeyNames([]byte(long)).AppendKey([]byte("key: "), string(key))); got != want {
				t.Errorf("a secret longer than a block: %s\nwant %s", got, want)
			}
		}
		if got != "key: "+strings.Join(want, " ") {
			t.Errorf("hashed: %s\nwant    %s", got, strings.Join(want, " "))
		}
	}
}

// The plain text of a key equals the KeyText of the request.
func TestKeyNamesAgreeWithKeyText(t *testing.T) {
	req := &headgate.Request{
		Method: "POST", Host: "a.example", Path: "/x", IP: addr("2001:db8::1"),
		Header: sent{"X-Client-Id": "é\u202e"}, Cookie: sent{"session": ""}, Region: "DE",
	}
	for _, texts := range [][]string{
		{"all"},
		{"ip", "method", "host"},
		{"ip/24", "ip/48", "user_ip/24/128"},
		{"header:X-Client-Id", "cookie:session", "region"},
	} {
		r := &Rule{Name: "a rule", Key: parts(t, texts...)}
		key, _ := r.AppendKey(nil, req)
		if got, want := "a rule "+string(PlainKeyNames().AppendKey(nil, string(key))), r.KeyText(req); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

func TestKeyNamesOfClients(t *testing.T) {
	part := parts(t, "header:X-Client-Id")[0]
	if got := string(PlainKeyNames().AppendClient(nil, part, "acme")); got != `header:X-Client-Id="acme"` {
		t.Error(got)
	}
	if got := string(PlainKeyNames().AppendClient(nil, part, "")); got != `header:X-Client-Id=(missing)` {
		t.Error(got)
	}
	got := string(HashedKeyNames([]byte("s")).AppendClient(nil, part, "acme"))
	if got != "header:X-Client-Id="+hashOf("s", "header:X-Client-Id", "acme") {
		t.Error(got)
	}
}

func TestKeyNamesAllocateNothing(t *testing.T) {
	r := &Rule{Name: "product", Key: parts(t, "header:X-Client-Id", "xff_ip", "path")}
	req := &headgate.Request{Path: "/v1/product", XFFIP: addr("2001:db8::1"), Header: sent{"X-Client-Id": "me"}}
	made, _ := r.AppendKey(nil, req)
	key, dst := string(made), make([]byte, 0, 1024)
	for name, names := range map[string]*KeyNames{"plain": PlainKeyNames(), "hashed": HashedKeyNames([]byte("secret"))} {
		if n := testing.AllocsPerRun(100, func() { dst = names.AppendKey(dst[:0], key) }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// A key that no rule built causes no panic and no long output.
func FuzzKeyNames(f *testing.F) {
	r := &Rule{Name: "product", Key: parts(f, "header:X-Client-Id", "ip", "ip/24")}
	key, _ := r.AppendKey(nil, &headgate.Request{Path: "/x", IP: addr("::1")})
	f.Add(string(key))
	f.Add("\x80")
	f.Add("\x01a\xff\xfe")
	plain, hashed := PlainKeyNames(), HashedKeyNames([]byte("s"))
	f.Fuzz(func(t *testing.T, key string) {
		for _, names := range []*KeyNames{plain, hashed} {
			if text := names.AppendKey(nil, key); len(text) > 64+48*len(key) {
				t.Fatalf("%q becomes %q", key, text)
			}
		}
	})
}

// TestPartOfKeyNames: a part alone has the value or the hash that it has in a key.
func TestPartOfKeyNames(t *testing.T) {
	long := strings.Repeat("k", 200)
	sum := sha256.Sum256([]byte(long))
	digest := "sha256:" + hex.EncodeToString(sum[:16])
	req := &headgate.Request{
		IP: addr("192.0.2.1"), XFFIP: addr("2001:db8:1:2:3::4"), Region: "NL",
		Header: sent{"X-Client-Id": `me "x"`, "X-Plan": `me "x"`, "X-Long": long, "X-Empty": ""},
	}
	hashed := HashedKeyNames([]byte("secret"))
	seen := map[string]string{}
	for part, value := range map[string]string{
		"header:X-Client-Id": `me "x"`, "header:X-Plan": `me "x"`, "header:X-Long": digest, "region": "NL", "ip": "192.0.2.1",
		"ip/24": "192.0.2.0/24", "xff_ip": "2001:db8:1:2::/64", "header:X-None": "", "header:X-Empty": "", "jwt:sub": "",
	} {
		p := parts(t, part)[0]
		plain, present := PlainKeyNames().AppendPart([]byte("a "), p, req)
		if string(plain) != "a "+value || present != (value != "") {
			t.Errorf("%s is %q, present %v, want %q", part, plain, present, value)
		}
		hash, _ := hashed.AppendPart(nil, p, req)
		if value == "" {
			if len(hash) > 0 {
				t.Errorf("%s without a value has the hash %s", part, hash)
			}
			continue
		}
		if string(hash) != hashOf("secret", part, value) {
			t.Errorf("%s has the hash %s", part, hash)
		}
		if former := seen[string(hash)]; former != "" {
			t.Errorf("%s and %s have one hash", part, former)
		}
		seen[string(hash)] = part
		if value == digest {
			value = long
		}
		if again := hashed.AppendValue(nil, p, value); !bytes.Equal(again, hash) {
			t.Errorf("%s as a text has the hash %s, and in a request %s", part, again, hash)
		}
	}
}

// TestPartsAllocateNothing names the parts of a request in a buffer.
func TestPartsAllocateNothing(t *testing.T) {
	req := &headgate.Request{IP: addr("192.0.2.1"), XFFIP: addr("2001:db8:1:2:3::4"), Header: sent{"X-Client-Id": "me"}}
	all, b := parts(t, "header:X-Client-Id", "xff_ip/56", "ip"), make([]byte, 0, 1024)
	hashed := HashedKeyNames([]byte("secret"))
	if n := testing.AllocsPerRun(100, func() {
		b = b[:0]
		for _, p := range all {
			b, _ = hashed.AppendPart(b, p, req)
		}
	}); n > 0 {
		t.Errorf("naming parts takes %v allocations", n)
	}
}
