package explain

import (
	"bytes"
	"strings"
	"testing"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/config"
)

func shopDomains(t *testing.T) []guard.Domain {
	t.Helper()
	c, err := config.Parse("f", []byte(`version: 1
rules: []
domains:
  shop:
    descriptors:
      - key: path
        value: /search*
        share_threshold: true
        name: search
        limits: [20/1m, 500/1h]
        quota_mode: true
      - key: path
        descriptors:
          - {key: user, limits: 5/1s, mode: shadow, replaces: [search, "a b"]}
          - {key: user, value: admin, unlimited: true}
  shop two: {descriptors: [{key: a, limits: 100/1s, algorithm: token_bucket, burst: 5}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	return c.Domains
}

func TestDescriptor(t *testing.T) {
	domains := shopDomains(t)
	for text, want := range map[string]string{
		"shop path=/search/a=b": `descriptor shop path="/search/a=b"
node       path="/search*"
name       "search"
limits     20/1m and 500/1h, by fixed_window
mode       enforce
key        shop path=all "/search*"
quota_mode a request passes as long as one of its descriptors with quota_mode passes
metric     shop.path_/search*
`,
		"shop path=/a,user=7": `descriptor shop path="/a" user="7"
node       path user
limits     5/1s, by fixed_window
mode       shadow
key        shop path="/a" user="7"
replaces   ["search" "a b"]
metric     shop.path.user
`,
		"shop path=/a,user=admin": `descriptor shop path="/a" user="admin"
node       path user="admin"
allowed: the descriptor is unlimited
metric     shop.path.user_admin
`,
		"shop path=/a": `descriptor shop path="/a"
node       path
allowed: the descriptor has no limits
`,
		"shop path=/search,user=7": `descriptor shop path="/search" user="7"
allowed: no descriptor of the domain has these keys and values, at the same depth
`,
		"shop two a": `descriptor "shop two" a=""
node       a
limits     100/1s burst 5, by token_bucket
mode       enforce
key        "shop two" a=""
metric     shop two.a
`,
	} {
		var out bytes.Buffer
		if err := Descriptor(&out, domains, text); err != nil || out.String() != want {
			t.Errorf("%s: error %v, got\n%swant\n%s", text, err, out.String(), want)
		}
	}
}

func TestDescriptorRefuses(t *testing.T) {
	domains := shopDomains(t)
	for text, want := range map[string]string{
		"shop":                                   `the request "shop" has no descriptor: write it like`,
		"other a=b":                              `there is no domain "other": use one of "shop", "shop two"`,
		"shop ":                                  "an entry of the descriptor has no key: write it like",
		"shop a=b,,c=d":                          "an entry of the descriptor has no key: write it like",
		"shop " + strings.Repeat("a,", 40) + "a": "the descriptor has 41 entries: no limit has more than 32",
	} {
		if err := Descriptor(&bytes.Buffer{}, domains, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
	if Names(domains, "GET /shop") || !Names(domains, "shop a=b") {
		t.Error("a request of HTTP and a descriptor are not told apart")
	}
}
