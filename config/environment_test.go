package config

import (
	"strings"
	"testing"
)

// TestEnvironment sets each variable to what differs from the file, and holds
// that the file's own value, which may be faulty, is then not looked at.
func TestEnvironment(t *testing.T) {
	const file = `
version: 1
store: memory
store_timeout: 1ms
fallback: deny
max_memory: 1MiB
on_full: deny
shutdown_timeout: 1s
evaluate: all_or_nothing
log: {level: info, decisions: none}
identity: {region_db: r, jwt: {keys: k, issuer: i, audience: a, leeway: 1s}}
rules: []
proxy: {listen: ":1", upstream: "http://a", read_header_timeout: 1s, idle_timeout: 1s, upstream_timeout: 1s, header_style: none}
admin: {listen: "127.0.0.1:2", health: "127.0.0.1:3"}
`
	for _, row := range []struct {
		variable, text string
		got            func(*Config) any
	}{
		{"HEADGATE_STORE", "memory", func(c *Config) any { return c.Store }},
		{"HEADGATE_STORE_TIMEOUT", "9ms", func(c *Config) any { return c.StoreTimeout.String() }},
		{"HEADGATE_FALLBACK", "allow", func(c *Config) any { return c.Fallback.String() }},
		{"HEADGATE_MAX_MEMORY", "9MiB", func(c *Config) any { return formatSize(c.MaxMemory) }},
		{"HEADGATE_ON_FULL", "allow", func(c *Config) any { return c.OnFull.String() }},
		{"HEADGATE_SHUTDOWN_TIMEOUT", "9s", func(c *Config) any { return c.ShutdownTimeout.String() }},
		{"HEADGATE_EVALUATE", "independent", func(c *Config) any { return map[bool]string{true: "independent"}[c.Independent] }},
		{"HEADGATE_IDENTITY_REGION_DB", "other.mmdb", func(c *Config) any { return c.Identity.RegionDB }},
		{"HEADGATE_IDENTITY_JWT_KEYS", "other.json", func(c *Config) any { return c.Identity.JWT.Keys }},
		{"HEADGATE_IDENTITY_JWT_ISSUER", "https://b", func(c *Config) any { return c.Identity.JWT.Issuer }},
		{"HEADGATE_IDENTITY_JWT_AUDIENCE", "b", func(c *Config) any { return c.Identity.JWT.Audience }},
		{"HEADGATE_IDENTITY_JWT_LEEWAY", "9s", func(c *Config) any { return c.Identity.JWT.Leeway.String() }},
		{"HEADGATE_LOG_LEVEL", "WARN", nil},
		{"HEADGATE_LOG_LEVEL", "warn", func(c *Config) any { return strings.ToLower(c.Log.Level.String()) }},
		{"HEADGATE_LOG_DECISIONS", "all", func(c *Config) any { return string(c.Log.Decisions) }},
		{"HEADGATE_PROXY_LISTEN", ":9", func(c *Config) any { return c.Proxy.Listen }},
		{"HEADGATE_PROXY_UPSTREAM", "http://b:9", func(c *Config) any { return c.Proxy.Upstream.String() }},
		{"HEADGATE_PROXY_READ_HEADER_TIMEOUT", "9s", func(c *Config) any { return c.Proxy.ReadHeaderTimeout.String() }},
		{"HEADGATE_PROXY_IDLE_TIMEOUT", "9s", func(c *Config) any { return c.Proxy.IdleTimeout.String() }},
		{"HEADGATE_PROXY_UPSTREAM_TIMEOUT", "9s", func(c *Config) any { return c.Proxy.UpstreamTimeout.String() }},
		{"HEADGATE_PROXY_HEADER_STYLE", "x-ratelimit", func(c *Config) any { return string(c.Proxy.HeaderStyle) }},
		{"HEADGATE_ADMIN_LISTEN", "127.0.0.1:9", func(c *Config) any { return c.Admin.Listen }},
		{"HEADGATE_ADMIN_HEALTH", "127.0.0.1:9", func(c *Config) any { return c.Admin.Health }},
	} {
		t.Run(row.variable+"="+row.text, func(t *testing.T) {
			lookup := func(name string) (string, bool) { return row.text, name == row.variable }
			c, err := parse("headgate.yaml", []byte(file), lookup)
			if row.got == nil {
				if err == nil {
					t.Error("it is accepted")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := row.got(c); got != row.text {
				t.Errorf("got %v", got)
			}
			// An empty variable is none: it is what an unset one of a container file becomes.
			unset := func(name string) (string, bool) { return "", name == row.variable }
			if c, err = parse("headgate.yaml", []byte(file), unset); err != nil {
				t.Fatal(err)
			}
			if got := row.got(c); row.variable != "HEADGATE_STORE" && got == row.text {
				t.Errorf("an empty variable gives %v", got)
			}
		})
	}
}

func TestEnvironmentReplacesAFaultyValue(t *testing.T) {
	lookup := func(name string) (string, bool) { return "http://a", name == "HEADGATE_PROXY_UPSTREAM" }
	c, err := parse("headgate.yaml", []byte("version: 1\nrules: []\nproxy: {upstream: nonsense}\n"), lookup)
	if err != nil || c.Proxy.Upstream.Host != "a" {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestEnvironmentAloneMakesAProxy(t *testing.T) {
	lookup := func(name string) (string, bool) { return "http://a", name == "HEADGATE_PROXY_UPSTREAM" }
	c, err := parse("headgate.yaml", []byte("version: 1\nrules: []\n"), lookup)
	if err != nil || c.Proxy.Upstream.Host != "a" {
		t.Errorf("got %+v, %v", c, err)
	}
}

// TestFaultsOfTheEnvironment holds that they name the variable, and show no
// address that may hold a password.
func TestFaultsOfTheEnvironment(t *testing.T) {
	for _, row := range []struct{ variable, text, want string }{
		{"HEADGATE_FALLBACK", "alow", `HEADGATE_FALLBACK: fallback: "alow" is not known: did you mean allow?`},
		{"HEADGATE_MAX_MEMORY", "1GB", `HEADGATE_MAX_MEMORY: max_memory: size "1GB" has the unknown unit "GB": write it like 256MiB; the units are B, KiB, MiB, GiB and TiB`},
		{"HEADGATE_SHUTDOWN_TIMEOUT", "10", `HEADGATE_SHUTDOWN_TIMEOUT: shutdown_timeout: duration "10" has no unit after "10": duration must be like 2s, 10m, 1h or 1d`},
		{"HEADGATE_ADMIN_LISTEN", ":9902", `HEADGATE_ADMIN_LISTEN: admin.listen: address ":9902" has no host, and would be open to every network: write 127.0.0.1:9902, or 0.0.0.0:9902 if every network is meant`},
		{"HEADGATE_ADMIN_HEALTH", "127.0.0.1:9902", `HEADGATE_ADMIN_HEALTH: admin.health: address "127.0.0.1:9902" is taken by admin.listen (127.0.0.1:9902): use another port`},
		{"HEADGATE_STORE", "redis://u:secret@h", `HEADGATE_STORE: store: redis stores are not supported yet: use memory`},
		{"HEADGATE_PROXY_UPSTREAM", "http://u:secret@h", `HEADGATE_PROXY_UPSTREAM: proxy.upstream: has a user or a password in it: leave it out, and let the caller send Authorization`},
		{"HEADGATE_IDENTITY_JWT_ISSUER", "https://a", `headgate.yaml: identity.jwt.keys: is missing: name a file of public keys, like keys: jwks.json`},
		{"HEADGATE_IDENTITY_JWT_LEEWAY", "1h", `HEADGATE_IDENTITY_JWT_LEEWAY: identity.jwt.leeway: "1h" is out of range: use 0s to 10m
headgate.yaml: identity.jwt.keys: is missing: name a file of public keys, like keys: jwks.json`},
		{"HEADGATE_PROXY_LISTEN", ":8081", `headgate.yaml: proxy.upstream: is missing: write the service behind, like upstream: http://127.0.0.1:9000`},
	} {
		lookup := func(name string) (string, bool) { return row.text, name == row.variable }
		_, err := parse("headgate.yaml", []byte("version: 1\nrules: []\n"), lookup)
		if err == nil || err.Error() != row.want {
			t.Errorf("%s=%s gives\n%v\nwant\n%s", row.variable, row.text, err, row.want)
		}
	}
}
