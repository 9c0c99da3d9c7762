package logs_test

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/cmd/internal/lab/logs"
	"github.com/headgate/headgate/rule"
)

// TestHowToLog: each server has a setting that names the part, or the text says that it cannot log the part.
func TestHowToLog(t *testing.T) {
	for _, c := range []struct{ format, part, want string }{
		{"nginx", client, `header:X-Client-Id="$http_x_client_id"';`},
		{"nginx", "cookie:session", `cookie:session="$cookie_session"';`},
		{"nginx", "xff_ip", `header:X-Forwarded-For="$http_x_forwarded_for"';`},
		{"nginx", "duration", `request_time=$request_time`},
		{"nginx", "jwt:sub", "nginx cannot log jwt:sub by itself"},
		{"apache", client, `header:X-Client-Id=\"%{X-Client-Id}i\"" headgate`},
		{"lighttpd", client, `header:X-Client-Id=\"%{X-Client-Id}i\""`},
		{"haproxy", client, "http-request set-var(txn.logged) req.hdr(X-Client-Id)\nlog-format "},
		{"haproxy", client, `header:X-Client-Id=%{+Q,+E}[var(txn.logged)]"`},
		{"haproxy", "jwt:sub", "http_auth_bearer,jwt_payload_query('$.sub')"},
		{"envoy", client, `"header:X-Client-Id": "%REQ(X-CLIENT-ID)%"}`},
		{"envoy", "jwt:sub", `"jwt:sub": "%DYNAMIC_METADATA(envoy.filters.http.jwt_authn:payload:sub)%"}`},
		{"envoy", "cookie:session", `"header:Cookie": "%REQ(COOKIE)%"}`},
		{"envoy", "ip", "%DOWNSTREAM_REMOTE_ADDRESS%"},
		{"caddy", client, "log { format json }"},
		{"caddy", "cookie:session", "log_credentials"},
		{"caddy", "region", "Caddy cannot log region by itself"},
		{"traefik", client, "accessLog: {format: json, fields: {headers: {names: {X-Client-Id: keep}}}}"},
		{"varnish", "cookie:session", `header:Cookie="%{Cookie}i"'`},
		{"squid", client, `header:X-Client-Id="%{X-Client-Id}>h"`},
		{"headgate", "jwt:sub", "log: {access: json, identity: [jwt:sub], keys_secret_file: keys.secret}"},
		{"combined", client, `the combined format has no header:X-Client-Id: for nginx, write log_format headgate `},
		{"json", client, "--field header:X-Client-Id=NAME"},
	} {
		if got := logs.HowToLog(c.format, c.part); !strings.Contains(got, c.want) {
			t.Errorf("%s with %s:\n%s\nwithout %s", c.format, c.part, got, c.want)
		}
	}
	for _, k := range logs.Kinds() {
		if got := logs.HowToLog(k.Name, client); !strings.Contains(strings.ToLower(got), "client") && k.Name != "caddy" {
			t.Errorf("%s: %s", k.Name, got)
		}
	}
}

// TestHasher: a value has the hash that operators can make with openssl, and another one for another part.
func TestHasher(t *testing.T) {
	h := logs.NewHasher([]byte("0123456789abcdef0123456789abcdef"))
	var all []string
	for _, text := range []string{client, "header:X-Plan"} {
		part, err := rule.ParsePart(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, h.Hash(part, "me"))
	}
	// printf 'header:X-Client-Id=me' | openssl dgst -sha256 -hmac 0123456789abcdef0123456789abcdef | sed 's/.* //' | cut -c-32
	if all[0] != "d1fc928ef00fd876d45c70904271ec99" || all[1] == all[0] {
		t.Errorf("the hashes are %v", all)
	}
}
